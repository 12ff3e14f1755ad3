// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI calls. There is one of it in a process, as there is one user of CUPTI, and it is never
// destroyed: a callback may be late. For gpu's own source files: this header needs <cupti.h>.
#pragma once

#include <cupti.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gpu/activity_buffers.h"
#include "gpu/cupti_api.h"
#include "gpu/graph_nodes.h"
#include "gpu/launch_counts.h"
#include "gpu/launch_moments.h"
#include "gpu/launch_path.h"
#include "gpu/launch_ring.h"
#include "gpu/launch_tally.h"
#include "gpu/wait_log.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Its callbacks throw nothing, and in a child of fork() do nothing. Those of launches take no lock
/// of ours and allocate nothing, but for those that are captured into a graph or waited for, and
/// where they are tallied those of a path and kernel that are new.
class CuptiCollector {
 public:
  struct Options {
    size_t count;
    size_t bytes;
    bool spare;
    bool tallies;           ///< launches are counted, and not noted for their records
    const CuptiApi* cupti;  ///< lives as long as the process
  };

  /// The process's own, for one session: until it gives it back others are refused. Forgets what
  /// was before. `path` lives as long as the process. Fails in a child of fork() of a process that
  /// has taken it. [any thread]
  static Result<CuptiCollector*> Take(const Options& options, LaunchPath& path);
  /// CUPTI is finalised, so it has none of the buffers.
  void GiveBack();
  /// CUPTI is not, and may still write to the buffers: there is to be no other session in this
  /// process. `why`: in words.
  void Keep(std::string why);

  /// Whether this is a child of fork() of a process that has taken it: of CUPTI and CUDA it has no
  /// use. [any thread] [async-signal-safe]
  static bool IsInChild();

  /// A call of the driver, or something of a graph's.
  static void CUPTIAPI OnEvent(void* collector, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void* data);
  static void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream, uint8_t* buffer,
                                         size_t size, size_t valid);

  const LaunchRing& ring() const { return ring_; }
  const GraphNodes& graph_nodes() const { return graph_nodes_; }
  const LaunchMoments& moments() const { return moments_; }
  WaitLog& waits() { return waits_; }
  /// From now on, and until it is taken again.
  void NoMoreWaits() { notes_waits_ = false; }
  ActivityBuffers& buffers() { return *buffers_; }
  /// Whether a CUDA graph was made or launched in any session of this process.
  bool saw_graphs() const { return saw_graphs_.load(std::memory_order_relaxed); }
  /// Whether a thread captures a stream into a graph, or is about to, and has begun since this was
  /// taken. A stream that is destroyed meanwhile counts as captured until the end.
  bool IsCapturing() const { return captures_.load(std::memory_order_acquire) > 0; }
  LaunchTotals launches() const { return counts_.Sum(); }
  /// What was launched, where it is tallied.
  std::vector<TallyRow> tally() const { return tally_.Rows(); }
  /// Counts them from 0.
  void ForgetLaunches() {
    counts_.Clear();
    tally_.Clear();
  }

 private:
  CuptiCollector(LaunchRing ring, LaunchMoments moments, LaunchTally tally)
      : ring_(std::move(ring)), moments_(std::move(moments)), tally_(std::move(tally)) {}
  Result<void> Prepare(const Options& options, LaunchPath& path);
  Result<ActivityBuffers*> BuffersFor(const Options& options);
  void OnBegin(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void OnEnd(CUpti_CallbackId id, const CUpti_CallbackData& call);
  void OnCaptureBegins(CUpti_CallbackId id);
  void CountCaptureEnd();
  void OnGraph(CUpti_CallbackId id, const CUpti_GraphData& graph);
  uint64_t NumberOf(CUgraphNode node) const;
  void Tally(const CUpti_CallbackData& call, LaunchKind kind, TalliedLaunch launch);

  LaunchRing ring_;
  LaunchMoments moments_;
  LaunchTally tally_;
  std::atomic<bool> tallies_{false};
  WaitLog waits_;
  std::atomic<bool> notes_waits_{true};
  LaunchCounts counts_;
  GraphNodes graph_nodes_;
  std::atomic<bool> saw_graphs_{false};
  std::atomic<uint32_t> captures_{0};  // of streams, that have begun and not ended
  std::atomic<const CuptiApi*> cupti_{nullptr};
  std::atomic<LaunchPath*> path_{nullptr};
  ActivityBuffers* buffers_ = nullptr;
  struct Made {
    size_t count, bytes;
    bool spare;
    std::unique_ptr<ActivityBuffers> buffers;
  };
  // A set of each size that was ever asked for, without memory once it was given back: a late
  // callback may have them.
  std::vector<Made> all_buffers_;
};

}  // namespace pystrobe::gpu
