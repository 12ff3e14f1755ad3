// SPDX-License-Identifier: Apache-2.0
//
// The pacer as its probes see it: a thread that sleeps until a deadline or until it is needed, and
// that must not be where the target runs.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Made by the pacer's own thread.
class Pacer {
 public:
  Pacer();
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  /// Ends its sleep; if it is awake, the next one, unless it has just woken. [any thread]
  void Wake();

  /// Moves it to the other CPUs it may use, if there are any, for good or until the next call. On
  /// the target's CPU its timer would interrupt the target once more for each sample; and who wakes
  /// there may wait for the next tick of the scheduler, milliseconds, until the target makes room.
  /// So whoever finds the target on a CPU calls this before it wakes the pacer. Where it starves on
  /// the CPUs that are left it has them all again for a while. Where none is left any more, as its
  /// cpuset has shrunk, that is tried again after a while. [any thread]
  void KeepOff(int cpu);
  /// False where it has to stay, as far as is known, or has been put back there by others. [any
  /// thread]
  bool CanKeepOff(int cpu);

  /// Sleeps until `until` (CLOCK_MONOTONIC) unless woken since the last Sleep; a signal ends it
  /// too. [the pacer]
  void Sleep(Nanoseconds until);

  /// The CPUs it was allowed to begin with. [any thread]
  const cpu_set_t& allowed() const { return allowed_; }
  bool has_one_cpu() const { return CPU_COUNT(&allowed_) == 1; }

 private:
  /// `late`: since the time until which it was to sleep.
  void NoteLate(Nanoseconds late);

  const pid_t tid_;
  cpu_set_t allowed_;
  std::mutex mutex_;
  int kept_off_ = -1;
  Nanoseconds stays_until_{};  // is not moved before
  std::atomic<uint32_t> woken_{0};
};

}  // namespace pystrobe::remote
