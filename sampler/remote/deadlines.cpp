// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/deadlines.h"

#include <algorithm>

namespace pystrobe::remote {

Deadlines::Deadlines(Nanoseconds start, double rate_hz, uint64_t seed)
    : next_(start), state_(seed | 1) {
  SetRate(rate_hz);
}

void Deadlines::SetRate(double rate_hz) {
  period_ = Nanoseconds(std::max<int64_t>(1, static_cast<int64_t>(1e9 / rate_hz)));
}

uint64_t Deadlines::Advance(Nanoseconds now) {
  uint64_t skipped = 0;
  for (bool first = true;; first = false) {
    auto jitter = static_cast<int64_t>(Random() % static_cast<uint64_t>(period_.count()));
    next_ += period_ / 2 + Nanoseconds(jitter);
    if (!first) ++skipped;
    if (next_ + kMostBehind * period_ >= now) return skipped;
  }
}

// xorshift64* (Vigna, ACM TOMS 2016): good enough for jitter, and no state to speak of.
uint64_t Deadlines::Random() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return (state_ * 0x2545f4914f6cdd1dU) >> 11;
}

}  // namespace pystrobe::remote
