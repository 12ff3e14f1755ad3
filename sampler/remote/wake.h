// SPDX-License-Identifier: Apache-2.0
//
// A thread of this process that sleeps until a time, or until another one wakes it by a signal.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <atomic>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Sleeps until `until` (CLOCK_MONOTONIC; max: for ever), or until woken since it last returned.
/// True: woken, or it may be so. The signal is sent to the thread alone, which keeps it blocked, so
/// no handler of the process runs for it. It says no more than that there may be something to do: a
/// wake-up from before can come late, two can come as one, and one that was meant for the process
/// can come here.
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

/// A one-shot timer that ends SleepUntilWoken, which gives false then. It does not take the place
/// of that one's own end: as another signal of the kind may be pending already, and for nothing, it
/// may be lost. But where several are set beforehand the CPU's clock is not set anew for each,
/// which on a virtual machine costs microseconds.
class WakeTimer {
 public:
  WakeTimer() = default;
  ~WakeTimer();
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  /// Ends the calling thread's sleep, always the same thread's, at `at` (CLOCK_MONOTONIC). False
  /// where the kernel has granted no timer, and it is not asked again: each takes one of the user's
  /// pending signals (RLIMIT_SIGPENDING). [that thread]
  bool Set(Nanoseconds at);
  /// [any thread]
  void Cancel();
  /// To what it was set last; zero: cancelled since, or never set. [the thread of Set]
  Nanoseconds at() const { return at_.load(); }

 private:
  timer_t timer_{};
  std::atomic<Nanoseconds> at_{Nanoseconds::zero()};
  std::atomic<bool> made_{false};
  bool refused_ = false;
};

}  // namespace pystrobe::remote
