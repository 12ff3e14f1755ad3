// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/wake.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/thread_sigevent.h"

namespace pystrobe::remote {
namespace {

// It may be sent to the whole process as well, and a Python program that samples another may have a
// handler for it. Our threads block it, so no handler runs there, and one that comes to them wakes
// a thread that finds nothing to do. The kernel gives it to the main thread unless that blocks it
// (complete_signal in kernel/signal.c), so handlers go on getting theirs, but for one that comes in
// the very moment in which a thread of ours begins to wait. Where nobody handles it it has no
// effect. No real-time signal: those are refused once the user has as many pending as may be.
constexpr int kWakeSignal = SIGURG;

// Of WakeTimer: not the same one, with which a wake-up would be one while it is pending, and would
// go with it when the timer is set anew (Linux 6.13+). The kernel sends this one to nobody.
constexpr int kTimerSignal = SIGSTKFLT;

timespec Timespec(Nanoseconds t) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  return {seconds.count(), (t - seconds).count()};
}

// True for kWakeSignal. `wait` null: for ever.
bool AwaitSignal(const timespec* wait) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, kWakeSignal);
  sigaddset(&ours, kTimerSignal);
  return sigtimedwait(&ours, nullptr, wait) == kWakeSignal;
}

}  // namespace

bool SleepUntilWoken(Nanoseconds until) {
  if (until == Nanoseconds::max()) return AwaitSignal(nullptr);
  const Nanoseconds rest = until - MonotonicNow();
  if (rest <= Nanoseconds::zero()) return false;
  const timespec wait = Timespec(rest);
  return AwaitSignal(&wait);
}

void WakeThread(pid_t tid) { tgkill(getpid(), tid, kWakeSignal); }

std::unique_ptr<const WakeTimer> WakeTimer::OfThisThread() {
  sigevent event = ThreadSigevent(gettid(), kTimerSignal);
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return nullptr;
  return std::unique_ptr<const WakeTimer>(new WakeTimer(timer));
}

void WakeTimer::Set(Nanoseconds at) const {
  itimerspec when{};
  if (at != Nanoseconds::max()) when.it_value = Timespec(at);
  timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

}  // namespace pystrobe::remote
