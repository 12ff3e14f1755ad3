// SPDX-License-Identifier: Apache-2.0
//
// When to take the next sample: absolute, jittered deadlines at a rate that may be lowered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "profiler/base/clock.h"
#include "profiler/model/deadline_series.h"

namespace pystrobe::remote {

/// [one thread]
class Deadlines {
 public:
  Deadlines(Nanoseconds start, double rate_hz, uint64_t seed);

  /// The deadline now due or next.
  Nanoseconds next() const { return drawn_.front(); }
  /// The `n`-th after next().
  Nanoseconds Ahead(size_t n);
  Nanoseconds period() const { return Nanoseconds(series_.period_ns); }
  /// How those not drawn yet will be.
  const DeadlineSeries& series() const { return series_; }
  /// Moves on to the deadline after next().
  void Pop();
  /// As Pop; but deadlines more than kMostBehind periods in the past are skipped and counted:
  /// catching up with them would bunch the samples. Returns how many.
  uint64_t Advance(Nanoseconds now);
  /// Moves on to the first deadline that is not before `now`. Returns how many were.
  uint64_t Skip(Nanoseconds now);
  /// Of deadlines not drawn yet.
  void SetRate(double rate_hz);

  static constexpr int kMostBehind = 8;

 private:
  std::deque<Nanoseconds> drawn_;  // never empty
  DeadlineSeries series_;
};

}  // namespace pystrobe::remote
