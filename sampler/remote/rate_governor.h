// SPDX-License-Identifier: Apache-2.0
//
// Keeps the time for which the target is held inside a limit by lowering the rate.
#pragma once

#include <optional>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// [one thread]
class RateGovernor {
 public:
  /// `max_share` of the target's time that may be held, e.g. 0.01; 0 = no limit.
  RateGovernor(double wanted_hz, double max_share, Nanoseconds start)
      : wanted_hz_(wanted_hz), rate_hz_(wanted_hz), max_share_(max_share), window_start_(start) {}

  /// Reports time held; at the end of a window returns the new rate if it changes.
  std::optional<double> Account(Nanoseconds held, Nanoseconds now);

  double rate_hz() const { return rate_hz_; }

  static constexpr Nanoseconds kWindow = std::chrono::milliseconds(250);
  static constexpr double kLeastHz = 1;

 private:
  double wanted_hz_, rate_hz_, max_share_;
  Nanoseconds window_start_;
  Nanoseconds held_{};
};

}  // namespace pystrobe::remote
