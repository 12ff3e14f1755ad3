// SPDX-License-Identifier: Apache-2.0
//
// Threads that run as soon as they wake, where they are to run.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::remote {

/// The kernel's struct sched_attr (include/uapi/linux/sched/types.h, first version); glibc 2.36 has
/// no wrapper.
struct SchedAttr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

enum class Urgency {
  kSoon,    ///< a short slice (Linux 6.12+)
  kAtOnce,  ///< real-time, of the lowest priority; else as kSoon. For threads that run for
            ///< microseconds at a time, milliseconds at worst.
};

/// While it lives, the scheduler runs the calling thread soon after it wakes, and its timers have
/// no slack; what privileges do not allow is left as it is, and so is a real-time thread. At the
/// end the thread's scheduling and CPU affinity are as they were.
class ScopedPromptness {
 public:
  explicit ScopedPromptness(Urgency urgency = Urgency::kSoon);
  ~ScopedPromptness();
  ScopedPromptness(const ScopedPromptness&) = delete;
  ScopedPromptness& operator=(const ScopedPromptness&) = delete;

 private:
  SchedAttr before_{};
  bool changed_ = false;
  int timer_slack_;
  cpu_set_t affinity_;
  bool affinity_known_;
};

/// Undoes for the calling thread what it has inherited of the promptness of the one that made it.
void BeOrdinary();

/// Pins a thread of ours; fails with kPermission or kInvalidArgument (a CPU outside our cpuset).
Result<void> PinTo(pid_t tid, int cpu);

/// Whether a thread, of any process, is of a real-time policy (SCHED_FIFO, SCHED_RR,
/// SCHED_DEADLINE). False where the kernel does not tell.
bool IsRealTime(pid_t tid);

/// Of the slice of who asks for a short one: the least that EEVDF takes (Linux 6.12+).
inline constexpr Nanoseconds kShortestSlice = std::chrono::microseconds(100);

/// Whether the calling thread, as it wakes, may find that who has the CPU keeps it: ordinary
/// scheduling from Linux 6.6 on lets nobody in whose own deadline, at the end of the shortest
/// slice, is after that of who runs. That is so for the last kShortestSlice of each slice of that
/// one's.
bool WaitsForSlices();

}  // namespace pystrobe::remote
