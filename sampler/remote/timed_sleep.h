// SPDX-License-Identifier: Apache-2.0
//
// The sleep of a thread that is to be awake at times that others name.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "profiler/base/clock.h"
#include "profiler/base/function_ref.h"
#include "sampler/remote/wake.h"

namespace pystrobe::remote {

/// A timer of its own CPU should wake the thread, for what it does then it does at a chance moment
/// of who has that CPU (wake.h). So it is told beforehand when it may be needed, and need not be
/// woken for it where that is so.
class TimedSleep {
 public:
  /// It is not needed every time that is expected; after so many times in vain it is not told.
  static constexpr uint32_t kMostInVain = 4;
  static constexpr Nanoseconds kNever = Nanoseconds::max();

  /// `tid`: the thread. Before it is first told anything.
  void Begin(pid_t tid) { tid_ = tid; }

  // [one thread, that gives it something to do]
  /// Something may be needed at `at`. It heeds this when it goes to sleep next: what it is to do
  /// before, if anything, is what must find it awake, or wake it.
  void Expect(Nanoseconds at);
  /// It is needed, as was expected or not.
  void NoteNeeded() { in_vain_ = 0; }
  /// It is needed: something has been given to it for `at`. Wakes it where it does not wake by
  /// itself until then: true where it had to be woken.
  bool WakeFor(Nanoseconds at);
  /// [any thread]
  void Wake();
  /// Of itself; zero: it is awake. [any thread]
  Nanoseconds wakes_at() const { return wakes_at_.load(); }

  /// kNever: nothing is. [any thread]
  Nanoseconds expected() const { return expected_.load(); }
  /// What was expected until `now` is over. [any thread]
  void PassExpected(Nanoseconds now);

  /// It sleeps until `at` instead, if it sleeps and has a timer. Who gives it something to do looks
  /// at wakes_at() after that, and this must come before the caller looks for what there is to do.
  /// [a thread on the CPU whose timer is to wake it]
  void PutOff(Nanoseconds at);

  // [the thread that sleeps]
  /// From now on it can be put off, which takes a system call more for each sleep; not where the
  /// user may have no more signals pending. Before it first sleeps.
  void UseTimer() { timer_ = WakeTimer::OfThisThread(); }
  /// It will sleep until `until`. Who gives it something to do after this wakes it.
  void Set(Nanoseconds until);
  /// Sleeps until then, unless `has_news` says that there is something to do before. True where it
  /// was woken.
  bool Sleep(FunctionRef<bool()> has_news);

 private:
  pid_t tid_ = 0;
  uint32_t in_vain_ = 0;
  std::unique_ptr<const WakeTimer> timer_;
  Nanoseconds until_{};  // kNever where the timer knows it
  std::atomic<Nanoseconds> expected_{kNever};
  std::atomic<Nanoseconds> wakes_at_{Nanoseconds::zero()};
};

}  // namespace pystrobe::remote
