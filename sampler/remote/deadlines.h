// SPDX-License-Identifier: Apache-2.0
//
// When to take the next sample: absolute, jittered deadlines at a rate that may be lowered.
#pragma once

#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Intervals are uniform in [0.5, 1.5) periods: a fixed interval aliases with programs that are
/// periodic themselves. [one thread]
class Deadlines {
 public:
  Deadlines(Nanoseconds start, double rate_hz, uint64_t seed);

  /// The deadline now due or next.
  Nanoseconds next() const { return next_; }
  Nanoseconds period() const { return period_; }
  /// Moves on to the deadline after next(). Deadlines more than kMostBehind periods in the past are
  /// skipped and counted: catching up with them would bunch the samples. Returns how many.
  uint64_t Advance(Nanoseconds now);
  void SetRate(double rate_hz);

  static constexpr int kMostBehind = 8;

 private:
  uint64_t Random();

  Nanoseconds next_;
  Nanoseconds period_{};
  uint64_t state_;
};

}  // namespace pystrobe::remote
