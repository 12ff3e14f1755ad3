// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/timed_sleep.h"

#include "sampler/remote/wake.h"

namespace pystrobe::remote {

void TimedSleep::Expect(Nanoseconds at) {
  if (in_vain_++ < kMostInVain) expected_.store(at);
}

bool TimedSleep::WakeFor(Nanoseconds at) {
  NoteNeeded();
  if (wakes_at() <= at) return false;
  Wake();
  return true;
}

void TimedSleep::Wake() { WakeThread(tid_); }

void TimedSleep::PassExpected(Nanoseconds now) {
  if (Nanoseconds at = expected_.load(); at <= now) expected_.compare_exchange_strong(at, kNever);
}

bool TimedSleep::Sleep(Nanoseconds until, FunctionRef<bool()> has_news) {
  wakes_at_.store(until);
  // Who gives it something to do after this finds it asleep.
  const bool woken = !has_news() && SleepUntilWoken(until);
  wakes_at_.store(Nanoseconds::zero());
  return woken;
}

}  // namespace pystrobe::remote
