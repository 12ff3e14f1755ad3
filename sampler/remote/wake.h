// SPDX-License-Identifier: Apache-2.0
//
// A thread of this process that sleeps until a time, or until another one wakes it by a signal.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <memory>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Sleeps until `until` (CLOCK_MONOTONIC; max: for ever), until the thread's WakeTimer goes off, or
/// until woken since it last returned. True: woken, or it may be so. The signal is sent to the
/// thread alone, which keeps it blocked, so no handler of the process runs for it. It says no more
/// than that there may be something to do: a wake-up from before can come late, two can come as
/// one, and one that was meant for the process can come here.
///
/// The timer is the calling CPU's, and who has that CPU meanwhile is taken off it by the interrupt
/// itself. Woken from another CPU it is marked first and interrupted microseconds later, and a
/// system call that ends in between gives the CPU away already: what a wake-up finds is no chance
/// moment of the program (bench/micro/wake_bias.cpp). (Where the kernel may have another CPU keep
/// the timers of an isolated one, nohz_full= with kernel.timer_migration, that is so here too.)
/// [a thread of StartThread, which has signals blocked]
bool SleepUntilWoken(Nanoseconds until);

/// [any thread]
void WakeThread(pid_t tid);

/// A timer that ends the SleepUntilWoken of the thread that made it. It can be put off while that
/// one sleeps, and is then a timer of the CPU of who does so.
class WakeTimer {
 public:
  /// Null where the user may have no more signals pending (RLIMIT_SIGPENDING).
  static std::unique_ptr<const WakeTimer> OfThisThread();
  ~WakeTimer() { timer_delete(timer_); }
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  /// Once, at `at` (CLOCK_MONOTONIC; max: never) instead of what was set before. [any thread]
  void Set(Nanoseconds at) const;

 private:
  explicit WakeTimer(timer_t timer) : timer_(timer) {}

  timer_t timer_;
};

}  // namespace pystrobe::remote
