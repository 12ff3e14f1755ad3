// SPDX-License-Identifier: Apache-2.0
//
// Keeps the time for which the target is held inside a limit by lowering the rate.
#pragma once

#include <algorithm>
#include <optional>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Begins at a rate that is sure to stay inside, and then follows what looks really cost. [one
/// thread]
class RateGovernor {
 public:
  /// `max_share` of the target's time that may be held, e.g. 0.01; 0 = no limit.
  RateGovernor(double wanted_hz, double max_share, Nanoseconds start);

  /// Reports time held; at the end of a window returns the new rate if it changes.
  std::optional<double> Account(Nanoseconds held, Nanoseconds now);

  double rate_hz() const { return rate_hz_; }
  /// Time spent at less than the wanted rate because more would have held the target for longer
  /// than it may be. The first windows, in which the rate rises as fast as it can, do not count.
  Nanoseconds limited() const { return limited_; }

  static constexpr Nanoseconds kWindow = std::chrono::milliseconds(250);
  static constexpr double kLeastHz = 1;

 private:
  double LeastHz() const { return std::min(kLeastHz, wanted_hz_); }

  double wanted_hz_, rate_hz_;
  double aim_;  ///< share to be held
  Nanoseconds window_start_;
  Nanoseconds held_{};  ///< in this window
  double debt_s_ = 0;   ///< seconds held beyond the aim so far
  bool rising_ = true;  ///< by the largest step in every window so far
  Nanoseconds limited_{};
};

}  // namespace pystrobe::remote
