// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_hold.h"

#include <sched.h>

#include <thread>

#include "sampler/remote/own_use.h"

namespace pystrobe::remote {
namespace {

// The other one may want to run where we spin, should both be on one CPU after all.
constexpr Nanoseconds kSpin = std::chrono::milliseconds(1);
constexpr Nanoseconds kNap = std::chrono::microseconds(100);

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool CpuHold::Await() {
  const Nanoseconds deadline = MonotonicNow() + kPatience;
  State state;
  while ((state = state_.load()) == kWanted) {
    if (MonotonicNow() >= deadline && Change(kWanted, kFree)) return false;
    Relax();
  }
  return state != kFree;
}

bool CpuHold::End() {
  if (Change(kHeld, kEnding)) {
    const Nanoseconds deadline = MonotonicNow() + kSpin;
    while (state_.load() == kEnding) {
      if (MonotonicNow() < deadline) {
        Relax();
      } else {
        std::this_thread::sleep_for(kNap);
      }
    }
  }
  return state_.exchange(kFree) == kKept;
}

// The count is taken before the CPU is said to be held and after it is said to be let go: a switch
// in between shows in it.
void CpuHold::Serve(int cpu) {
  if (state_.load() != kWanted) return;
  const OwnUse before = OwnUseNow();
  if (!Change(kWanted, sched_getcpu() == cpu ? kHeld : kFree)) return;
  const Nanoseconds deadline = MonotonicNow() + kLongest;
  while (state_.load() == kHeld) {
    if (MonotonicNow() >= deadline && Change(kHeld, kLost)) return;
    Relax();
  }
  if (state_.load() != kEnding) return;
  const bool kept = OwnUseNow().switches == before.switches && sched_getcpu() == cpu;
  state_.store(kept ? kKept : kLost);
}

}  // namespace pystrobe::remote
