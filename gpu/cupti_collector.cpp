// SPDX-License-Identifier: Apache-2.0
#include "gpu/cupti_collector.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <utility>

#include "profiler/base/clock.h"

namespace pystrobe::gpu {
namespace {

std::mutex mutex;  // of what is not atomic
CuptiCollector* collector = nullptr;
bool is_taken = false;
std::string kept_because;  // empty: it is taken by a session that runs

std::atomic<bool> is_in_child{false};
// CUPTI's requests for buffers do not say whose they are.
std::atomic<ActivityBuffers*> lender{nullptr};

// Of the call that this thread is in, if any. CUPTI may tell the begin of a call and not its end,
// or the other way round, where a session begins or ends meanwhile.
struct CurrentCall {
  bool is_launch = false;
  bool is_captured = false;  // the driver made a node of a graph of it
  bool begins_capture = false;
  int64_t wait_begin_ns = 0;  // 0: it is no wait
  TalliedLaunch tallied;      // what is known of it, where launches are tallied
};
[[gnu::tls_model("initial-exec")]] constinit thread_local CurrentCall current_call;

// Of this thread, asked for once: that is a system call.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint32_t own_tid = 0;

// A graph is launched as a kernel is.
WorkKind WorkKindOf(LaunchKind kind) {
  switch (kind) {
    case LaunchKind::kKernel:
    case LaunchKind::kGraph:
      return WorkKind::kKernel;
    case LaunchKind::kCopy:
      return WorkKind::kCopy;
    case LaunchKind::kSet:
      return WorkKind::kSet;
  }
  return WorkKind::kKernel;
}

// One that is spoilt ends too, with an error; any other means that it goes on.
bool EndsCapture(CUpti_CallbackId id, bool begins, CUresult result) {
  if (begins) return result != CUDA_SUCCESS;
  return CaptureEdgeOf(id) == CaptureEdge::kEnd &&
         (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
          result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

uint32_t OwnTid() {
  if (own_tid == 0) own_tid = static_cast<uint32_t>(gettid());
  return own_tid;
}

}  // namespace

Result<CuptiCollector*> CuptiCollector::Take(const Options& options, LaunchPath& path) {
  if (IsInChild()) {
    return FailWithHint(ErrorCode::kGpu,
                        "Start processes with the method \"spawn\" or \"forkserver\".",
                        "a child made by fork() has no use of its parent's CUDA");
  }
  const std::lock_guard lock(mutex);
  if (is_taken && !kept_because.empty()) {
    return FailWithHint(ErrorCode::kGpu, "Start the program anew.",
                        "CUPTI cannot be used again in this process: {}", kept_because);
  }
  if (is_taken) {
    return FailWithHint(ErrorCode::kGpu, "Stop the one that runs.",
                        "this process traces its GPU work already");
  }
  if (collector == nullptr) {
    auto ring = LaunchRing::Make();
    if (!ring) return std::unexpected(ring.error());
    auto moments = LaunchMoments::Make();
    if (!moments) return std::unexpected(moments.error());
    auto tally = LaunchTally::Make();
    if (!tally) return std::unexpected(tally.error());
    collector = new CuptiCollector(*std::move(ring), *std::move(moments), *std::move(tally));
    pthread_atfork(nullptr, nullptr, [] { is_in_child = true; });
  }
  if (auto done = collector->Prepare(options, path); !done) return std::unexpected(done.error());
  is_taken = true;
  return collector;
}

Result<void> CuptiCollector::Prepare(const Options& options, LaunchPath& path) {
  const auto buffers = BuffersFor(options);
  if (!buffers) return std::unexpected(buffers.error());
  buffers_ = *buffers;
  // CUPTI starts its correlation ids over.
  ring_.Clear();
  moments_.Clear();
  tally_.Clear();
  tallies_ = options.tallies;
  waits_.Clear();
  notes_waits_ = true;
  counts_.Clear();
  graph_nodes_.Clear();
  captures_ = 0;
  cupti_ = options.cupti;
  path_ = &path;
  lender = buffers_;
  return {};
}

Result<ActivityBuffers*> CuptiCollector::BuffersFor(const Options& options) {
  for (const Made& made : all_buffers_) {
    if (made.count == options.count && made.bytes == options.bytes && made.spare == options.spare) {
      return made.buffers.get();
    }
  }
  auto made = ActivityBuffers::Make(options.count, options.bytes, options.spare);
  if (!made) return std::unexpected(made.error());
  all_buffers_.push_back({options.count, options.bytes, options.spare, *std::move(made)});
  return all_buffers_.back().buffers.get();
}

void CuptiCollector::GiveBack() {
  const std::lock_guard lock(mutex);
  buffers_->Reclaim();
  is_taken = false;
}

void CuptiCollector::Keep(std::string why) {
  const std::lock_guard lock(mutex);
  kept_because = std::move(why);
}

bool CuptiCollector::IsInChild() { return is_in_child.load(std::memory_order_relaxed); }

void CUPTIAPI CuptiCollector::OnEvent(void* collector, CUpti_CallbackDomain domain,
                                      CUpti_CallbackId id, const void* data) {
  if (IsInChild()) return;
  auto& self = *static_cast<CuptiCollector*>(collector);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    call.callbackSite == CUPTI_API_EXIT ? self.OnEnd(id, call) : self.OnBegin(id, call);
  } else {
    const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
    self.OnGraph(id, *static_cast<const CUpti_GraphData*>(resource.resourceDescriptor));
  }
}

void CuptiCollector::OnBegin(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const auto kind = KindOfLaunchCall(id);
  const bool tallies = tallies_.load(std::memory_order_relaxed);
  const bool is_wait = IsWaitCall(id);
  // The clock is much of what a launch costs that is tallied.
  const int64_t now_ns = is_wait || !tallies ? MonotonicNow().count() : 0;
  current_call = {.is_launch = kind.has_value(), .wait_begin_ns = is_wait ? now_ns : 0};
  if (!kind) {
    if (!is_wait) OnCaptureBegins(id);
    return;
  }
  if (kind == LaunchKind::kGraph) saw_graphs_.store(true, std::memory_order_relaxed);
  if (tallies) {
    current_call.tallied.period = tally_.period();
    current_call.tallied.path = path_.load(std::memory_order_acquire)->Current().path;
    return;
  }
  if (kind != LaunchKind::kGraph) counts_.Add(*kind);
  const LaunchOrigin origin = path_.load(std::memory_order_acquire)->Current();
  moments_.Put(call.correlationId, {.time_ns = now_ns, .tid = OwnTid()});
  ring_.Put(call.correlationId, origin);
}

// What puts one thing on a device is counted with those that fail, to be held against the records.
void CuptiCollector::OnEnd(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const CurrentCall ended = std::exchange(current_call, {});
  // First: what follows is no part of the wait.
  const int64_t now_ns = ended.wait_begin_ns != 0 ? MonotonicNow().count() : 0;
  const auto result = *static_cast<const CUresult*>(call.functionReturnValue);
  const bool is_done = result == CUDA_SUCCESS;
  const auto kind = KindOfLaunchCall(id);
  if (!kind && ended.wait_begin_ns == 0) {
    if (EndsCapture(id, ended.begins_capture, result)) CountCaptureEnd();
    return;
  }
  const bool is_tallied = ended.tallied.period != 0;
  // One that began before all was forgotten, or in another session, is in no figure.
  if (is_tallied && ended.tallied.period != tally_.period()) return;
  if (is_tallied && kind != LaunchKind::kGraph) counts_.Add(*kind);
  if (kind == LaunchKind::kGraph) {
    if (is_done && !ended.is_captured) counts_.Add(*kind);
  } else if (kind && !is_done) {
    counts_.AddFailed();
  } else if (kind && ended.is_captured) {
    counts_.AddCaptured();
  }
  if (is_tallied && is_done && !ended.is_captured) Tally(call, *kind, ended.tallied);
  if (ended.wait_begin_ns == 0 || !notes_waits_.load(std::memory_order_relaxed)) return;
  waits_.Put({.begin_ns = ended.wait_begin_ns,
              .end_ns = now_ns,
              .tid = OwnTid(),
              .path = path_.load(std::memory_order_acquire)->Current().path});
}

// Before it does: whoever asks meanwhile is told that it may have.
void CuptiCollector::OnCaptureBegins(CUpti_CallbackId id) {
  if (CaptureEdgeOf(id) != CaptureEdge::kBegin) return;
  current_call.begins_capture = true;
  captures_.fetch_add(1, std::memory_order_acq_rel);
}

// Of one that began before, the begin was not seen.
void CuptiCollector::CountCaptureEnd() {
  uint32_t open = captures_.load(std::memory_order_acquire);
  while (open > 0 && !captures_.compare_exchange_weak(open, open - 1)) {
  }
}

// Of what is no kernel the name is that of the driver's function.
void CuptiCollector::Tally(const CUpti_CallbackData& call, LaunchKind kind, TalliedLaunch launch) {
  const bool has_symbol = kind == LaunchKind::kKernel && call.symbolName != nullptr;
  launch.kind = WorkKindOf(kind);
  launch.context = call.contextUid;
  launch.name = has_symbol ? call.symbolName : call.functionName;
  tally_.Add(launch, [&] {
    uint32_t device = 0;
    // 0 where it does not tell.
    static_cast<void>(cupti_.load()->cuptiGetDeviceId(call.context, &device));
    return device;
  });
}

// While a stream is captured each launch creates a node. Instantiation creates a copy of each,
// which is what records tell of, and then says of what it is one. The graph of those goes with the
// executable one, as an H200 with CUDA 13.0 has it.
void CuptiCollector::OnGraph(CUpti_CallbackId id, const CUpti_GraphData& graph) {
  uint32_t number = 0;
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      saw_graphs_.store(true, std::memory_order_relaxed);
      current_call.is_captured = current_call.is_launch;
      if (cupti_.load()->cuptiGetGraphId(graph.graph, &number) != CUPTI_SUCCESS) return;
      graph_nodes_.Create(number, NumberOf(graph.node), path_.load()->Current().path);
      return;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      graph_nodes_.Clone(NumberOf(graph.node), NumberOf(graph.originalNode));
      return;
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING:
      if (cupti_.load()->cuptiGetGraphId(graph.graph, &number) == CUPTI_SUCCESS) {
        graph_nodes_.Destroy(number);
      }
      return;
    default:
      return;
  }
}

// 0 where it has none; no node has that.
uint64_t CuptiCollector::NumberOf(CUgraphNode node) const {
  uint64_t number = 0;
  if (cupti_.load()->cuptiGetGraphNodeId(node, &number) != CUPTI_SUCCESS) return 0;
  return number;
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
