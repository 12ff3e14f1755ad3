// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/rate_governor.h"

#include <algorithm>
#include <cmath>

namespace pystrobe::remote {
namespace {

using Seconds = std::chrono::duration<double>;

// Of the limit: looks differ in cost, and the run as a whole must stay inside.
constexpr double kAim = 0.9;
// What a look may cost on a slow machine. Where it costs less the rate is soon raised.
constexpr Seconds kAssumedCost = std::chrono::microseconds(40);
constexpr double kLargestStep = 1.5;
constexpr double kLeastStep = 0.05;
// What was held too long is made up for within this time; as much credit is kept.
constexpr Seconds kHorizon = std::chrono::seconds(2);
constexpr double kMostCredit = 0.2;

}  // namespace

RateGovernor::RateGovernor(double wanted_hz, double max_share, Nanoseconds start)
    : wanted_hz_(wanted_hz), rate_hz_(wanted_hz), aim_(max_share * kAim), window_start_(start) {
  if (aim_ > 0) rate_hz_ = std::clamp(aim_ / kAssumedCost.count(), LeastHz(), wanted_hz_);
}

std::optional<double> RateGovernor::Account(Nanoseconds held, Nanoseconds now) {
  held_ += held;
  if (aim_ <= 0 || now - window_start_ < kWindow) return std::nullopt;
  const Seconds window = now - window_start_;
  const double share = Seconds(held_) / window;
  debt_s_ += (share - aim_) * window.count();
  debt_s_ = std::max(debt_s_, -kMostCredit * aim_ * kHorizon.count());
  if (!rising_ && rate_hz_ < wanted_hz_) limited_ += now - window_start_;
  held_ = {};
  window_start_ = now;

  const double next_share = std::max(0.0, aim_ - debt_s_ / kHorizon.count());
  double factor = share > 0 ? next_share / share : kLargestStep;
  if (factor < kLargestStep) rising_ = false;
  factor = std::min(factor, kLargestStep);
  if (std::abs(factor - 1) < kLeastStep) return std::nullopt;
  const double rate = std::clamp(rate_hz_ * factor, LeastHz(), wanted_hz_);
  if (rate == rate_hz_) return std::nullopt;
  rate_hz_ = rate;
  return rate;
}

}  // namespace pystrobe::remote
