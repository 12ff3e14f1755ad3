// SPDX-License-Identifier: Apache-2.0
//
// How long a thread sleeps between being woken and doing what it was woken for.
#pragma once

#include <random>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Who is woken from another CPU takes its own CPU from a thread that has just made a system call,
/// more often than not (wake.h). After a nap ended by its own CPU's timer it takes it at a chance
/// moment, where the nap is as long as many rounds of a loop around such a call, and of a chance
/// length. (Of rounds longer than the nap it finds rather what comes soon after the call.)
/// [one thread]
class ChanceNap {
 public:
  ChanceNap() : random_(static_cast<uint32_t>(MonotonicNow().count())) {}
  Nanoseconds Draw() { return kShortest + Nanoseconds(random_() % kRange); }

 private:
  static constexpr Nanoseconds kShortest = std::chrono::microseconds(10);
  static constexpr uint32_t kRange = 40'000;  // ns

  std::minstd_rand random_;
};

}  // namespace pystrobe::remote
