// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/wake.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

// glibc names the member in sigevent(3type) only from 2.38 on.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace pystrobe::remote {
namespace {

// They may be sent to the whole process as well: a terminal that changes its size sends SIGWINCH to
// all of its foreground group, and a Python program that samples another may have a handler for it.
// Our threads block them, so no handler runs there, and one that comes to them wakes a thread that
// finds nothing to do. The kernel gives it to the main thread unless that blocks it
// (complete_signal in kernel/signal.c), so handlers go on getting theirs, but for one that comes in
// the very moment in which a thread of ours begins to wait. Where nobody handles these two they
// have no effect. No real-time signals: those are refused once the user has as many pending as may
// be. And not the same one twice: a signal that is pending already is not sent again, and if the
// pending one is of a timer that was set anew since, the kernel drops it too (Linux 6.13,
// kernel/time/posix-timers.c, posixtimer_deliver_signal), so that nothing would be left to wake
// the thread.
constexpr int kWakeSignal = SIGURG;
constexpr int kTimerSignal = SIGWINCH;

timespec Timespec(Nanoseconds t) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  return {seconds.count(), (t - seconds).count()};
}

}  // namespace

bool SleepUntilWoken(Nanoseconds until) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, kWakeSignal);
  sigaddset(&ours, kTimerSignal);
  if (until == Nanoseconds::max()) return sigwaitinfo(&ours, nullptr) == kWakeSignal;
  const Nanoseconds rest = until - MonotonicNow();
  if (rest <= Nanoseconds::zero()) return false;
  const timespec wait = Timespec(rest);
  return sigtimedwait(&ours, nullptr, &wait) == kWakeSignal;
}

void WakeThread(pid_t tid) { tgkill(getpid(), tid, kWakeSignal); }

WakeTimer::~WakeTimer() {
  if (made_) timer_delete(timer_);
}

bool WakeTimer::Set(Nanoseconds at) {
  if (refused_) return false;
  if (!made_) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTimerSignal;
    event.sigev_notify_thread_id = gettid();
    refused_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0;
    if (refused_) return false;
    made_ = true;
  }
  // Said before it is so, as Cancel unsays it after: where the two meet it may go off for nothing,
  // but is not thought to be set, when it is not, for longer than Cancel takes.
  at_.store(at);
  const itimerspec when{.it_interval = {}, .it_value = Timespec(at)};
  return timer_settime(timer_, TIMER_ABSTIME, &when, nullptr) == 0;
}

void WakeTimer::Cancel() {
  const itimerspec never{};
  if (made_) timer_settime(timer_, 0, &never, nullptr);
  at_.store(Nanoseconds::zero());
}

}  // namespace pystrobe::remote
