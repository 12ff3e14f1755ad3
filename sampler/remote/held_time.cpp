// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/held_time.h"

#include <algorithm>

namespace pystrobe::remote {

void RunningMedian::Add(Nanoseconds sample) {
  const Nanoseconds step = std::max(value_ / 50, Nanoseconds(1));
  if (sample > value_) value_ += step;
  if (sample < value_) value_ -= step;
}

Nanoseconds HeldTime::Estimate(const HeldCopies& sample) {
  if (sample.copies == 0) return {};
  const Nanoseconds copying = sample.copying;
  if (!sample.waited) return copying + switches_.value() * sample.copies;
  if (!sample.disturbed && *sample.waited > copying) {
    switches_.Add((*sample.waited - copying) / sample.copies);
  }
  // Twice the median: our own switches are not all alike.
  return std::min(*sample.waited, copying + 2 * switches_.value() * sample.copies);
}

}  // namespace pystrobe::remote
