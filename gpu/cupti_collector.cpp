// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_collector.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>

#include "profiler/base/clock.h"

namespace pystrobe::gpu {
namespace {

std::mutex mutex;  // of what is not atomic
CuptiCollector* collector = nullptr;
bool is_taken = false;

std::atomic<bool> is_in_child{false};
// CUPTI's requests for buffers do not say whose they are.
std::atomic<ActivityBuffers*> lender{nullptr};

}  // namespace

Result<CuptiCollector*> CuptiCollector::Take(const Options& options, LaunchPath& path) {
  if (IsInChild()) {
    return FailWithHint(ErrorCode::kGpu,
                        "Start processes with the method \"spawn\" or \"forkserver\".",
                        "a child made by fork() has no use of its parent's CUDA");
  }
  const std::lock_guard lock(mutex);
  if (is_taken) {
    return FailWithHint(ErrorCode::kGpu, "Stop the one that runs.",
                        "this process traces its GPU work already");
  }
  if (collector == nullptr) {
    auto ring = LaunchRing::Make();
    if (!ring) return std::unexpected(ring.error());
    collector = new CuptiCollector(*std::move(ring));
    pthread_atfork(nullptr, nullptr, [] { is_in_child = true; });
  }
  if (auto done = collector->Prepare(options, path); !done) return std::unexpected(done.error());
  is_taken = true;
  return collector;
}

Result<void> CuptiCollector::Prepare(const Options& options, LaunchPath& path) {
  const bool is_same = buffers_ != nullptr && options.count == options_.count &&
                       options.bytes == options_.bytes && options.spare == options_.spare;
  if (!is_same) {
    auto made = ActivityBuffers::Make(options.count, options.bytes, options.spare);
    if (!made) return std::unexpected(made.error());
    all_buffers_.push_back(*std::move(made));
    buffers_ = all_buffers_.back().get();
    options_ = options;
  }
  if (options.moments && !moments_) {
    auto made = LaunchMoments::Make();
    if (!made) return std::unexpected(made.error());
    moments_ = *std::move(made);
  }
  // CUPTI starts its correlation ids over.
  ring_.Clear();
  if (moments_) moments_->Clear();
  kept_moments_ = options.moments ? &*moments_ : nullptr;
  counts_.Clear();
  path_ = &path;
  lender = buffers_;
  return {};
}

void CuptiCollector::GiveBack() {
  const std::lock_guard lock(mutex);
  buffers_->Reclaim();
  is_taken = false;
}

bool CuptiCollector::IsInChild() { return is_in_child.load(std::memory_order_relaxed); }

void CUPTIAPI CuptiCollector::OnCall(void* collector, CUpti_CallbackDomain, CUpti_CallbackId id,
                                     const void* data) {
  if (IsInChild()) return;
  auto& self = *static_cast<CuptiCollector*>(collector);
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite == CUPTI_API_EXIT) {
    const auto* const result = static_cast<const CUresult*>(call.functionReturnValue);
    if (*result != CUDA_SUCCESS) self.counts_.AddFailed();
    return;
  }
  const auto kind = KindOfLaunchCall(id);
  if (!kind) return;
  self.counts_.Add(*kind);
  if (LaunchMoments* const moments = self.kept_moments_.load(std::memory_order_relaxed)) {
    moments->Put(call.correlationId,
                 {.time_ns = MonotonicNow().count(), .tid = static_cast<uint32_t>(gettid())});
  }
  self.ring_.Put(call.correlationId, self.path_.load(std::memory_order_acquire)->Current());
}

void CUPTIAPI CuptiCollector::OnBufferRequested(uint8_t** buffer, size_t* size,
                                                size_t* max_records) {
  ActivityBuffers* const from = lender.load(std::memory_order_acquire);
  *buffer = IsInChild() ? nullptr : from->Lend();
  *size = *buffer != nullptr ? from->bytes() : 0;
  *max_records = 0;  // as many as it holds
}

void CUPTIAPI CuptiCollector::OnBufferCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t,
                                                size_t valid) {
  if (IsInChild() || buffer == nullptr) return;
  lender.load(std::memory_order_acquire)->Fill(buffer, valid);
}

}  // namespace pystrobe::gpu
