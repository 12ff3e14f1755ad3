// SPDX-License-Identifier: Apache-2.0
//
// The clock of traced calls: what is cheap to read twice a call. [any thread]
#pragma once

#include <x86intrin.h>

#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::trace {

/// Time in ticks of an unknown length: what matters is read often, and converted once at the end.
using Ticks = uint64_t;

/// Reads the processor's time stamp counter where the kernel itself keeps time by it (then it runs
/// at one rate, on all CPUs alike, asleep or not), else CLOCK_MONOTONIC. On the machine where this
/// was measured a read takes 10 ns and 24 ns.
class TickClock {
 public:
  static Ticks Now() {
    if (UsesTsc()) [[likely]]
      return ReadTsc();
    return static_cast<Ticks>(MonotonicNow().count());
  }
  /// Whether ReadTsc is Now.
  static bool UsesTsc() { return uses_tsc_; }
  static Ticks ReadTsc() { return __rdtsc(); }
  /// "TSC" or "CLOCK_MONOTONIC".
  static const char* Name() { return uses_tsc_ ? "TSC" : "CLOCK_MONOTONIC"; }

 private:
  static const bool uses_tsc_;
};

/// How long a tick is: CLOCK_MONOTONIC at two moments, and the ticks between them.
class TickRate {
 public:
  /// Spends about a millisecond to know the rate to some 0.01 %; Refine makes that better.
  static TickRate Measure();
  /// As known from the first moment until now: the longer ago that was, the better.
  void Refine();

  double ticks_per_ns() const { return ticks_per_ns_; }
  Nanoseconds ToTime(Ticks ticks) const {
    return Nanoseconds(static_cast<int64_t>(static_cast<double>(ticks) / ticks_per_ns_));
  }
  Ticks ToTicks(Nanoseconds time) const {
    return static_cast<Ticks>(static_cast<double>(time.count()) * ticks_per_ns_);
  }
  /// CLOCK_MONOTONIC as it was when the clock showed `ticks`.
  Nanoseconds TimeAt(Ticks ticks) const {
    return first_.time +
           Nanoseconds(static_cast<int64_t>(
               static_cast<double>(static_cast<int64_t>(ticks - first_.ticks)) / ticks_per_ns_));
  }

 private:
  struct Pair {
    Ticks ticks;
    Nanoseconds time;
  };
  static Pair ReadPair();

  explicit TickRate(const Pair& first) : first_(first) {}

  Pair first_;
  double ticks_per_ns_ = 1;
};

}  // namespace pystrobe::trace
