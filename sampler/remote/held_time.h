// SPDX-License-Identifier: Apache-2.0
//
// How long the target waited because of us.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Follows the median of a stream by steps of a fiftieth, so that outliers weigh no more than
/// others ("frugal streaming": Ma, Muthukrishnan, Sandler, 2013).
class RunningMedian {
 public:
  explicit RunningMedian(Nanoseconds start) : value_(start) {}
  void Add(Nanoseconds sample);
  Nanoseconds value() const { return value_; }

 private:
  Nanoseconds value_;
};

/// One sample's worth of what is known. [value]
struct HeldCopies {
  std::optional<Nanoseconds> waited;  ///< run_delay since the sample before: for us and for others;
                                      ///< nullopt where the kernel does not tell
  Nanoseconds copying{};  ///< that we had the CPU for, all copies of this sample together
  uint32_t copies = 0;
  bool disturbed = false;  ///< the copying thread lost its CPU meanwhile, so others had it too
};

/// A thread that is preempted waits while we copy and for two context switches, which no clock of
/// ours sees; the kernel's run_delay has them, and with them all that others made it wait. Most
/// samples are disturbed by no other, so the median of what run_delay has beyond the copying is the
/// price of the switches; what goes far beyond that was not our doing. [one thread at a time]
class HeldTime {
 public:
  /// The time held for this sample.
  Nanoseconds Estimate(const HeldCopies& sample);

 private:
  // As measured on a virtual machine; a few hundred samples find the machine's own.
  RunningMedian switches_{std::chrono::microseconds(10)};
};

}  // namespace pystrobe::remote
