// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/wake.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace pystrobe::remote {
namespace {

// It may be sent to the whole process as well, and a Python program that samples another may have a
// handler for it. Our threads block it, so no handler runs there, and one that comes to them wakes
// a thread that finds nothing to do. The kernel gives it to the main thread unless that blocks it
// (complete_signal in kernel/signal.c), so handlers go on getting theirs, but for one that comes in
// the very moment in which a thread of ours begins to wait. Where nobody handles it it has no
// effect. No real-time signal: those are refused once the user has as many pending as may be.
constexpr int kWakeSignal = SIGURG;

timespec Timespec(Nanoseconds t) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  return {seconds.count(), (t - seconds).count()};
}

}  // namespace

bool SleepUntilWoken(Nanoseconds until) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, kWakeSignal);
  if (until == Nanoseconds::max()) return sigwaitinfo(&ours, nullptr) == kWakeSignal;
  const Nanoseconds rest = until - MonotonicNow();
  if (rest <= Nanoseconds::zero()) return false;
  const timespec wait = Timespec(rest);
  return sigtimedwait(&ours, nullptr, &wait) == kWakeSignal;
}

void WakeThread(pid_t tid) { tgkill(getpid(), tid, kWakeSignal); }

}  // namespace pystrobe::remote
