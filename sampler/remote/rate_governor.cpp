// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/rate_governor.h"

#include <algorithm>

namespace pystrobe::remote {

std::optional<double> RateGovernor::Account(Nanoseconds held, Nanoseconds now) {
  held_ += held;
  if (max_share_ <= 0 || now - window_start_ < kWindow) return std::nullopt;
  const double share = std::chrono::duration<double>(held_) / (now - window_start_);
  held_ = {};
  window_start_ = now;
  // Down at once, up by steps, and no hunting in between.
  constexpr double kAim = 0.9, kLargestStep = 1.5;
  double rate = rate_hz_;
  if (share > max_share_) {
    rate = rate_hz_ * max_share_ * kAim / share;
  } else if (rate_hz_ < wanted_hz_ && share < max_share_ * kAim * kAim) {
    double factor = share > 0 ? max_share_ * kAim / share : kLargestStep;
    rate = rate_hz_ * std::min(factor, kLargestStep);
  }
  rate = std::clamp(rate, std::min(kLeastHz, wanted_hz_), wanted_hz_);
  if (rate == rate_hz_) return std::nullopt;
  rate_hz_ = rate;
  return rate;
}

}  // namespace pystrobe::remote
