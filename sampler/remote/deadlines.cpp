// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/deadlines.h"

#include <algorithm>

namespace pystrobe::remote {

Deadlines::Deadlines(Nanoseconds start, double rate_hz, uint64_t seed)
    : drawn_{start}, series_{.last_ns = start.count(), .state = seed | 1} {
  SetRate(rate_hz);
}

void Deadlines::SetRate(double rate_hz) {
  series_.period_ns = std::max<int64_t>(1, static_cast<int64_t>(1e9 / rate_hz));
}

Nanoseconds Deadlines::Ahead(size_t n) {
  while (drawn_.size() <= n) drawn_.emplace_back(series_.Draw());
  return drawn_[n];
}

void Deadlines::Pop() {
  Ahead(1);
  drawn_.pop_front();
}

uint64_t Deadlines::Advance(Nanoseconds now) {
  Pop();
  return Skip(now - kMostBehind * period());
}

uint64_t Deadlines::Skip(Nanoseconds now) {
  uint64_t skipped = 0;
  for (; next() < now; ++skipped) Pop();
  return skipped;
}

}  // namespace pystrobe::remote
