// SPDX-License-Identifier: Apache-2.0
#include "gpu/scoped_context.h"

#include <atomic>
#include <utility>

namespace pystrobe::gpu {
namespace {

// Once: it is not released, as programs that use the runtime keep theirs too.
Result<Context> MakePrimary(const DriverApi& cuda) {
  static std::atomic<Context> made{nullptr};
  unsigned long long id = 0;
  if (const Context known = made.load()) {
    if (cuda.cuCtxGetId(known, &id) == CUDA_SUCCESS) return known;
  }
  CUdevice device = 0;
  Context context = nullptr;
  auto done = cuda.Check(cuda.cuInit(0), "initialising the CUDA driver");
  if (done) done = cuda.Check(cuda.cuDeviceGet(&device, 0), "looking for the first device");
  if (done) {
    done = cuda.Check(cuda.cuDevicePrimaryCtxRetain(&context, device), "making its context");
  }
  if (!done) return std::unexpected(done.error());
  made.store(context);
  return context;
}

}  // namespace

Result<ScopedContext> ScopedContext::Of(const DriverApi& cuda, Stream stream) {
  Context context = nullptr;
  if (stream != nullptr) {
    const auto done = cuda.Check(cuda.cuStreamGetCtx(stream, &context), "asking for the stream");
    if (!done) return std::unexpected(done.error());
    return Of(cuda, context);
  }
  const CUresult result = cuda.cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_INITIALIZED) {
    return std::unexpected(cuda.ErrorOf(result, "asking for the context"));
  }
  if (context == nullptr) {
    const auto primary = MakePrimary(cuda);
    if (!primary) return std::unexpected(primary.error());
    context = *primary;
  }
  return Of(cuda, context);
}

Result<ScopedContext> ScopedContext::Of(const DriverApi& cuda, Context context) {
  ScopedContext scope(cuda, context);
  if (auto entered = scope.Enter(); !entered) return std::unexpected(entered.error());
  return scope;
}

ScopedContext::ScopedContext(ScopedContext&& other) noexcept
    : cuda_(other.cuda_),
      context_(other.context_),
      id_(other.id_),
      pushed_(std::exchange(other.pushed_, false)) {}

ScopedContext::~ScopedContext() {
  Context popped = nullptr;
  if (pushed_) cuda_->cuCtxPopCurrent(&popped);
}

Result<void> ScopedContext::Enter() {
  Context current = nullptr;
  auto done = cuda_->Check(cuda_->cuCtxGetCurrent(&current), "asking for the context");
  if (done && current != context_) {
    done = cuda_->Check(cuda_->cuCtxPushCurrent(context_), "entering the context");
    pushed_ = done.has_value();
  }
  unsigned long long id = 0;
  if (done) done = cuda_->Check(cuda_->cuCtxGetId(context_, &id), "asking for the context");
  id_ = id;
  return done;
}

}  // namespace pystrobe::gpu
