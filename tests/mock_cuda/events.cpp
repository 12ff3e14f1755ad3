// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <set>
#include <utility>

#include "tests/mock_cuda/stream.h"

struct CUevent_st {
  CUctx_st* context;
  bool is_recorded = false;
  bool is_pending = false;
  int64_t time = 0;
};

namespace mock_cuda {
namespace {

std::set<CUevent_st*> events;
std::atomic<uint64_t> live_events{0};

bool IsReached(const CUevent_st& event) {
  AdvanceAll();
  return !event.is_recorded || (!event.is_pending && event.time <= Now());
}

}  // namespace

EXPORT uint64_t mock_events() { return live_events; }

EXPORT CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  BEGIN();
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st{CurrentContext()};
  events.insert(*event);
  ++live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event) {
  BEGIN();
  if (events.erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  --live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr || !events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (own->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  event->is_recorded = event->is_pending = true;
  Operation record;
  record.run = [event](int64_t begin) {
    event->time = begin;
    event->is_pending = false;
  };
  return Put(stream, std::move(record));
}

EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
  BEGIN();
  if (!events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  return IsReached(*event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  {
    BEGIN();
    if (!events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  }
  WaitUntil([event] { return IsReached(*event); });
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  BEGIN();
  if (!begin->is_recorded || !end->is_recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!IsReached(*begin) || !IsReached(*end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(static_cast<double>(end->time - begin->time) / 1e6);
  return CUDA_SUCCESS;
}

}  // namespace mock_cuda
