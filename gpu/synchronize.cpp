// SPDX-License-Identifier: Apache-2.0
#include "gpu/synchronize.h"

#include "gpu/driver_api.h"
#include "gpu/scoped_context.h"

namespace pystrobe::gpu {
namespace {

Result<void> SynchronizeContext(const DriverApi& cuda, Context context,
                                FunctionRef<bool()> is_capturing) {
  if (is_capturing()) {
    return Fail(ErrorCode::kGpu,
                "a stream was captured into a graph, so the device was not waited for");
  }
  const auto scope = ScopedContext::Of(cuda, context);
  if (!scope) return std::unexpected(scope.error());
  return cuda.Check(cuda.cuCtxSynchronize(), "waiting for the device");
}

Result<void> SynchronizePrimary(const DriverApi& cuda, CUdevice device,
                                FunctionRef<bool()> is_capturing) {
  unsigned flags = 0;
  int is_active = 0;
  auto done = cuda.Check(cuda.cuDevicePrimaryCtxGetState(device, &flags, &is_active),
                         "asking for the device's context");
  if (!done || is_active == 0) return done;
  Context context = nullptr;
  done = cuda.Check(cuda.cuDevicePrimaryCtxRetain(&context, device), "entering its context");
  if (!done) return done;
  done = SynchronizeContext(cuda, context, is_capturing);
  cuda.cuDevicePrimaryCtxRelease(device);
  return done;
}

}  // namespace

Result<void> SynchronizeDevices(FunctionRef<bool()> is_capturing) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  int count = 0;
  if ((*cuda)->cuDeviceGetCount(&count) != CUDA_SUCCESS) return {};
  Result<void> all;
  const auto note = [&all](Result<void> done) {
    if (all) all = std::move(done);
  };
  Context current = nullptr;
  if ((*cuda)->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr) {
    note(SynchronizeContext(**cuda, current, is_capturing));
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    auto done = (*cuda)->Check((*cuda)->cuDeviceGet(&device, i), "looking for the device");
    note(done ? SynchronizePrimary(**cuda, device, is_capturing) : done);
  }
  return all;
}

}  // namespace pystrobe::gpu
