// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI calls. There is one of it in a process, as there is one user of CUPTI, and it is never
// destroyed: a callback may be late. For gpu's own source files: this header needs <cupti.h>.
#pragma once

#include <cupti.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/activity_buffers.h"
#include "gpu/launch_counts.h"
#include "gpu/launch_moments.h"
#include "gpu/launch_path.h"
#include "gpu/launch_ring.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Its callbacks take no lock of ours, allocate nothing and throw nothing; in a child of fork()
/// they do nothing.
class CuptiCollector {
 public:
  struct Options {
    size_t count;
    size_t bytes;
    bool spare;
    bool moments;  ///< of launches, to be kept
  };

  /// The process's own, for one session: until it gives it back others are refused. Forgets what
  /// was before. `path` lives as long as the process. Fails in a child of fork() of a process that
  /// has taken it. [any thread]
  static Result<CuptiCollector*> Take(const Options& options, LaunchPath& path);
  /// CUPTI is finalised, so it has none of the buffers.
  void GiveBack();

  /// Whether this is a child of fork() of a process that has taken it: of CUPTI and CUDA it has no
  /// use. [any thread] [async-signal-safe]
  static bool IsInChild();

  static void CUPTIAPI OnCall(void* collector, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* data);
  static void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records);
  static void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream, uint8_t* buffer,
                                         size_t size, size_t valid);

  const LaunchRing& ring() const { return ring_; }
  /// Null where they are not kept.
  const LaunchMoments* moments() const { return kept_moments_.load(); }
  ActivityBuffers& buffers() { return *buffers_; }
  LaunchTotals launches() const { return counts_.Sum(); }
  /// Counts them from 0.
  void ForgetLaunches() { counts_.Clear(); }

 private:
  explicit CuptiCollector(LaunchRing ring) : ring_(std::move(ring)) {}
  Result<void> Prepare(const Options& options, LaunchPath& path);

  LaunchRing ring_;
  std::optional<LaunchMoments> moments_;  // once they were asked for
  std::atomic<LaunchMoments*> kept_moments_{nullptr};
  LaunchCounts counts_;
  std::atomic<LaunchPath*> path_{nullptr};
  ActivityBuffers* buffers_ = nullptr;
  Options options_{};
  // Those of before too, without memory: a late callback may have them.
  std::vector<std::unique_ptr<ActivityBuffers>> all_buffers_;
};

}  // namespace pystrobe::gpu
