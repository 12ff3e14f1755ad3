// SPDX-License-Identifier: Apache-2.0
//
// How a sampler draws the times at which samples are due. Who knows a series can draw it as well,
// and then needs to be told no more of a sample's time than how late it was.
#pragma once

#include <cstdint>

namespace pystrobe {

/// Intervals are uniform in [0.5, 1.5) periods: a fixed interval aliases with programs that are
/// periodic themselves. The .strobe format contains this formula.
struct DeadlineSeries {
  int64_t last_ns = 0;    ///< the deadline drawn last
  int64_t period_ns = 1;  ///< at least 1
  uint64_t state = 1;     ///< of the generator; 0 would stay 0

  /// The next deadline, which last_ns then is.
  int64_t Draw() {
    // xorshift64* (Vigna, ACM TOMS 2016): good enough for jitter, and no state to speak of.
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t random = (state * 0x2545f4914f6cdd1dU) >> 11;
    const auto jitter = static_cast<int64_t>(random % static_cast<uint64_t>(period_ns));
    return last_ns += period_ns / 2 + jitter;
  }

  friend bool operator==(const DeadlineSeries&, const DeadlineSeries&) = default;
};

}  // namespace pystrobe
