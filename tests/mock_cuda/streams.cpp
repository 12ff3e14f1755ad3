// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "tests/mock_cuda/stream.h"

namespace mock_cuda {
namespace {

constexpr int64_t kGap = 700;  // between two operations of a stream, in nanoseconds

std::map<CUctx_st*, CUstream_st*> default_streams;
std::set<CUstream_st*> streams;
uint32_t next_stream = 7;  // as CUPTI numbers them: the default stream is the first
std::atomic<const MockCudaHook*> hook{nullptr};

void Nap() {
  constexpr timespec kNap{0, 20'000};
  nanosleep(&kNap, nullptr);
}

// They stay: who has one of a stream that is gone may ask for it.
CUstream_st* MakeStream(CUctx_st* context) {
  static std::deque<CUstream_st>& all = *new std::deque<CUstream_st>;
  return &all.emplace_back(context, next_stream++);
}

bool IsDone(CUstream_st& stream) {
  Advance(stream);
  return stream.queue.empty() && stream.free_at <= Now();
}

bool SpoilCaptures() {
  bool any = false;
  for (CUstream_st* stream : streams) {
    any |= stream->is_captured;
    stream->is_spoilt |= stream->is_captured;
  }
  return any;
}

}  // namespace

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

CUstream_st* Resolve(CUstream stream) {
  if (stream != nullptr) return streams.contains(stream) ? stream : nullptr;
  CUctx_st* const context = CurrentContext();
  if (context == nullptr) return nullptr;
  auto& own = default_streams[context];
  if (own == nullptr) own = MakeStream(context);
  return own;
}

void Advance(CUstream_st& stream) {
  while (!stream.queue.empty() && stream.queue.front().is_due()) {
    Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    const int64_t put = operation.waits ? Now() : operation.put;
    const int64_t begin = std::max(stream.free_at + kGap, put);
    operation.run(begin);
    stream.free_at = begin + operation.duration;
  }
}

void AdvanceAll() {
  for (CUstream_st* stream : streams) Advance(*stream);
  for (const auto& [context, stream] : default_streams) Advance(*stream);
}

CUresult Put(CUstream handle, Operation operation) {
  CUstream_st* const stream = Resolve(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->context->is_gone) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  operation.put = Now();
  stream->queue.push_back(std::move(operation));
  Advance(*stream);
  return CUDA_SUCCESS;
}

// Without the lock, so that another thread may be what it waits for.
void WaitUntil(const std::function<bool()>& condition) {
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (condition()) return;
    }
    Nap();
  }
}

Seen::Seen(MockCudaCall call) : hook_(hook), call_(call) {
  if (hook_ != nullptr) hook_->enter(call_);
}

Seen::~Seen() {
  if (hook_ != nullptr) hook_->exit(call_, result_);
}

CUresult Seen::Put(CUstream stream, Operation operation) {
  if (hook_ != nullptr) {
    if (CUstream_st* const own = Resolve(stream)) call_.stream = own->id;
    operation.run = [run = std::move(operation.run), duration = operation.duration, hook = hook_,
                     call = call_](int64_t begin) {
      run(begin);
      hook->done(call, begin, begin + duration);
    };
  }
  return mock_cuda::Put(stream, std::move(operation));
}

EXPORT void mock_set_hook(const MockCudaHook* to) { hook = to; }
EXPORT void mock_capture(CUstream_st* stream, int on) { stream->is_captured = on != 0; }

EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  {
    BEGIN();
    if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (SpoilCaptures()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  WaitUntil([context = CurrentContext()] {
    bool done = true;
    for (CUstream_st* stream : streams) done &= stream->context != context || IsDone(*stream);
    const auto own = default_streams.find(context);
    return done && (own == default_streams.end() || IsDone(*own->second));
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  BEGIN();
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = MakeStream(CurrentContext());
  streams.insert(*stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  BEGIN();
  return streams.erase(stream) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = own->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  Seen seen({.function = "cuStreamSynchronize"});
  CUstream_st* own = nullptr;
  {
    BEGIN();
    own = Resolve(stream);
    if (own == nullptr) return seen.Exit(CUDA_ERROR_INVALID_HANDLE);
  }
  WaitUntil([own] { return IsDone(*own); });
  return seen.Exit(CUDA_SUCCESS);
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = own->is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  Seen seen({.function = "cuStreamBeginCapture_v2"});
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return seen.Exit(CUDA_ERROR_INVALID_HANDLE);
  if (own->is_captured) return seen.Exit(CUDA_ERROR_ILLEGAL_STATE);
  own->is_captured = true;
  own->is_spoilt = false;
  return seen.Exit(CUDA_SUCCESS);
}

// What is put on the stream meanwhile runs here: graphs are mock_cupti's.
EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Seen seen({.function = "cuStreamEndCapture"});
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return seen.Exit(CUDA_ERROR_INVALID_HANDLE);
  if (!own->is_captured) return seen.Exit(CUDA_ERROR_ILLEGAL_STATE);
  own->is_captured = false;
  *graph = nullptr;
  return seen.Exit(own->is_spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
}

// The moment at which the word has changed is that at which it is seen.
EXPORT CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                            unsigned) {
  BEGIN();
  auto* const word = reinterpret_cast<uint32_t*>(address);
  Operation wait;
  wait.waits = true;
  wait.is_due = [word, value] {
    return static_cast<int32_t>(std::atomic_ref(*word).load() - value) >= 0;
  };
  return Put(stream, std::move(wait));
}

}  // namespace mock_cuda
