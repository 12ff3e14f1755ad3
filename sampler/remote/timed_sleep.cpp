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

void TimedSleep::PutOff(Nanoseconds at) {
  Nanoseconds before = wakes_at();
  // In this order: it has slept before, so the timer it may have is there to be seen.
  if (before == Nanoseconds::zero() || before == at || !timer_) return;
  if (!wakes_at_.compare_exchange_strong(before, at)) return;
  timer_->Set(at);
  // It woke, and had set the timer already, to a time that is lost now.
  const Nanoseconds after = wakes_at();
  if (after != at && after != Nanoseconds::zero()) Wake();
}

void TimedSleep::Set(Nanoseconds until) {
  until_ = timer_ ? kNever : until;
  wakes_at_.store(until);
  if (!timer_) return;
  timer_->Set(until);
  // It was put off in between.
  if (const Nanoseconds at = wakes_at(); at != until) timer_->Set(at);
}

bool TimedSleep::Sleep(FunctionRef<bool()> has_news) {
  const bool woken = !has_news() && SleepUntilWoken(until_);
  wakes_at_.store(Nanoseconds::zero());
  return woken;
}

}  // namespace pystrobe::remote
