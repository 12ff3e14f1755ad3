// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver_api.h"

#include <array>
#include <atomic>
#include <memory>

#include "gpu/library.h"

namespace pystrobe::gpu {
namespace {

constexpr int kVersion = 12000;
constexpr const char* kDriverHint =
    "A driver for CUDA 12.0 or later is needed (525 or later), and in a container the driver's "
    "libraries: `docker run --gpus all`, say.";

Result<DriverApi> Find() {
  constexpr std::array<const char*, 1> kNames{"libcuda.so.1"};
  const auto library = Library::Open("libcuda.so", kNames);
  if (!library) {
    return FailWithHint(ErrorCode::kGpu, kDriverHint, "there is no CUDA driver: {}",
                        library.error().message);
  }
  const auto find =
      reinterpret_cast<decltype(&cuGetProcAddress_v2)>(library->Symbol("cuGetProcAddress_v2"));
  if (find == nullptr) {
    int version = 0;
    if (const auto get_version = reinterpret_cast<decltype(&cuDriverGetVersion)>(
            library->Symbol("cuDriverGetVersion"))) {
      get_version(&version);
    }
    return FailWithHint(ErrorCode::kGpu, kDriverHint, "the CUDA driver {} is for CUDA {}.{}",
                        library->path(), version / 1000, version % 1000 / 10);
  }
  DriverApi api;
#define PYSTROBE_FIND(name)                                                                     \
  {                                                                                             \
    void* symbol = nullptr;                                                                     \
    CUdriverProcAddressQueryResult status{};                                                    \
    if (find(#name, &symbol, kVersion, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS || \
        symbol == nullptr) {                                                                    \
      return FailWithHint(ErrorCode::kGpu, kDriverHint, "the CUDA driver {} has no {}",         \
                          library->path(), #name);                                              \
    }                                                                                           \
    api.name = reinterpret_cast<decltype(api.name)>(symbol);                                    \
  }
  PYSTROBE_DRIVER_FUNCTIONS(PYSTROBE_FIND)
#undef PYSTROBE_FIND
  return api;
}

std::string HintOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_INITIALIZED:
      return "CUDA is not initialised here. If this is a child made by fork(), it has no use of "
             "its "
             "parent's: start processes with the method \"spawn\" or \"forkserver\".";
    case CUDA_ERROR_NO_DEVICE:
      return "Is there a device, and does CUDA_VISIBLE_DEVICES name it?";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "The device's memory is taken: free some of it (torch.cuda.empty_cache(), say).";
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "Was the stream destroyed, or the device reset, meanwhile?";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "Where a stream cannot be held back, hold_back=False measures with the launches.";
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "Our kernels are compiled by the driver: it needs its libnvidia-ptxjitcompiler.so.1, "
             "and a "
             "device of compute capability 6.0 or later.";
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_CAPTURED_EVENT:
      return "Time the graph's launches instead: what is captured does not run yet.";
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
      return "A kernel launched before has failed, and this process can use the device no more. "
             "CUDA_LAUNCH_BLOCKING=1 shows which.";
    default:
      return {};
  }
}

}  // namespace

Result<const DriverApi*> DriverApi::Load() {
  // No lock: a child of fork() might find it taken for ever.
  static std::atomic<const Result<DriverApi>*> looked{nullptr};
  const Result<DriverApi>* found = looked.load();
  if (found == nullptr) {
    auto own = std::make_unique<const Result<DriverApi>>(Find());
    if (looked.compare_exchange_strong(found, own.get())) found = own.release();
  }
  if (!*found) return std::unexpected(found->error());
  return &**found;
}

Error DriverApi::ErrorOf(CUresult result, std::string_view what) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return {ErrorCode::kGpu,
          fmt::format("{}: {} ({})", what, name != nullptr ? name : "an error without a name",
                      text != nullptr ? text : std::to_string(static_cast<int>(result))),
          HintOf(result)};
}

}  // namespace pystrobe::gpu
