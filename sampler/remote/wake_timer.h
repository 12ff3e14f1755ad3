// SPDX-License-Identifier: Apache-2.0
//
// Waking one thread of this process by a signal that it waits for: at once, or by a timer.
#pragma once

#include <sys/types.h>
#include <time.h>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// A thread may sleep until another one wakes it. The signal is sent to the thread alone, which
/// keeps it blocked, so no handler of the process runs for it. It says no more than that there may
/// be something to do: a wake-up from before can come late, two can come as one, and one that was
/// meant for the process can come here.

/// Sleeps until woken since it last returned. [a thread of StartThread, which has signals blocked]
void SleepUntilWoken();
/// [any thread]
void WakeThread(pid_t tid);

/// A one-shot timer. It fires on the CPU of the thread that set it (the kernel keeps a timer where
/// it is armed unless that CPU idles), in the interrupt: no thread of that CPU runs for it.
/// [one thread]
class WakeTimer {
 public:
  WakeTimer() = default;
  ~WakeTimer();
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  /// Wakes the thread `tid`, always the same, at `at` (CLOCK_MONOTONIC). False where the kernel
  /// grants no timer: each takes one of the user's pending signals (RLIMIT_SIGPENDING).
  bool Set(pid_t tid, Nanoseconds at);
  void Cancel();

 private:
  timer_t timer_{};
  bool made_ = false;
};

}  // namespace pystrobe::remote
