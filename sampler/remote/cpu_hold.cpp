// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_hold.h"

#include <algorithm>
#include <thread>

#include "sampler/remote/cpu_stay.h"

namespace pystrobe::remote {
namespace {

// The other one may want to run where we spin, should both be on one CPU after all.
constexpr Nanoseconds kSpin = std::chrono::milliseconds(1);
constexpr Nanoseconds kNap = std::chrono::microseconds(100);
// Longer than it takes to wake from a sleep that is to end before.
constexpr Nanoseconds kWorthSleeping = std::chrono::microseconds(150);
// A holder that answers so late has lost its CPU to others; how long for is for them to say.
constexpr Nanoseconds kLongestAnswer = std::chrono::milliseconds(5);

}  // namespace

void CpuHold::Ask(Nanoseconds at) {
  at_.store(at);
  state_.store(kWanted);
}

Nanoseconds CpuHold::due() const {
  return state_.load() == kWanted ? at_.load() : Nanoseconds::max();
}

bool CpuHold::SleepUntilSoon() const {
  const Nanoseconds early = at_.load() - MonotonicNow() - kWorthSleeping;
  if (early <= Nanoseconds::zero()) return false;
  std::this_thread::sleep_for(early);
  return true;
}

bool CpuHold::Await() {
  const Nanoseconds deadline = std::max(MonotonicNow(), at_.load()) + kPatience;
  State state;
  while ((state = state_.load()) == kWanted) {
    if (MonotonicNow() >= deadline && Change(kWanted, kFree)) return false;
    __builtin_ia32_pause();
  }
  if (state == kHeld) return true;
  Change(kLost, kFree);
  return false;
}

bool CpuHold::End() {
  if (Change(kHeld, kEnding)) {
    const Nanoseconds start = MonotonicNow();
    for (Nanoseconds waited{}; state_.load() == kEnding; waited = MonotonicNow() - start) {
      if (waited >= kLongestAnswer && Change(kEnding, kFree)) return false;
      if (waited < kSpin) {
        __builtin_ia32_pause();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }
  return state_.exchange(kFree) == kKept;
}

// The stay begins before the CPU is said to be held and is asked about after that was asked back: a
// switch in between shows. Of one that was broken it is not known how much of the time was ours.
void CpuHold::Serve(int cpu) {
  if (state_.load() != kWanted) return;
  const Nanoseconds begin = MonotonicNow();
  const CpuStay stay;
  if (!Change(kWanted, stay.cpu() == cpu ? kHeld : kFree)) return;
  while (state_.load() == kHeld) {
    if (MonotonicNow() - begin >= kLongest) Change(kHeld, kLost);
    __builtin_ia32_pause();
  }
  const bool kept = stay.Lasts();
  const Nanoseconds elapsed = MonotonicNow() - begin;
  stay_ns_.fetch_add((kept ? elapsed : std::min(elapsed, kLongest)).count());
  Change(kEnding, kept ? kKept : kLost);
}

}  // namespace pystrobe::remote
