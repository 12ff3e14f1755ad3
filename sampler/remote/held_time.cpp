// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/held_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kLeast = std::chrono::microseconds(1);

}  // namespace

void RunningQuantile::Add(Nanoseconds sample) {
  constexpr double kStep = 0.04;  // of the value
  const double change = sample > value_ ? share_ : sample < value_ ? share_ - 1 : 0;
  value_ += Nanoseconds(std::llround(change * kStep * static_cast<double>(value_.count())));
  value_ = std::max(value_, kLeast);
}

Nanoseconds HeldTime::Estimate(const HeldCopies& sample, Nanoseconds& pending) {
  if (sample.copies == 0) return {};
  const Nanoseconds copying = sample.copying;
  if (!sample.waited) return copying + switches_.value() * sample.copies;
  const auto [waited, arrivals] = *sample.waited;
  if (arrivals == 0) {
    pending += copying + switches_.value() * sample.copies;
    return {};
  }
  const bool undisturbed = !sample.disturbed && arrivals <= sample.copies;
  if (undisturbed && waited > copying) switches_.Add((waited - copying) / sample.copies);
  // Our own switches are not all alike: half of them take up to a third more than the quantile,
  // and hardly any twice as much.
  const double factor = undisturbed ? 2 : 1.25;
  const Nanoseconds switches(
      std::llround(factor * static_cast<double>(switches_.value().count()) * sample.copies));
  return std::min(waited, copying + switches + std::exchange(pending, Nanoseconds{}));
}

}  // namespace pystrobe::remote
