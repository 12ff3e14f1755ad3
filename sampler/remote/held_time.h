// SPDX-License-Identifier: Apache-2.0
//
// How long the target waited because of us.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Follows a quantile of a stream by small steps, so that outliers weigh no more than others
/// ("frugal streaming": Ma, Muthukrishnan, Sandler, 2013).
class RunningQuantile {
 public:
  /// `share`: of the stream, below the quantile.
  RunningQuantile(double share, Nanoseconds start) : share_(share), value_(start) {}
  void Add(Nanoseconds sample);
  Nanoseconds value() const { return value_; }

 private:
  double share_;
  Nanoseconds value_;
};

/// What the kernel says of a thread since the sample before: how long it waited for a CPU, for us
/// and for others, and how often it was put on one. [value]
struct Waiting {
  Nanoseconds time{};
  uint64_t arrivals = 0;
};

/// One sample's worth of what is known. [value]
struct HeldCopies {
  std::optional<Waiting> waited;  ///< nullopt where the kernel does not tell
  Nanoseconds copying{};          ///< that we had the CPU for, all copies of this sample together
  uint32_t copies = 0;
  bool disturbed = false;  ///< the copying thread lost its CPU meanwhile, so others had it too
};

/// A thread that is preempted waits while we copy and for two context switches, which no clock of
/// ours sees; the kernel's run_delay has them, and with them all that others made it wait. Where
/// the thread was put on a CPU only as often as we had taken it off, no other took it off; but
/// another may have had the CPU next, for that was its turn anyway. On a busy CPU that is so most
/// of the time, hence a low quantile of what run_delay has beyond the copying is the price of the
/// switches, and what goes far beyond that was not our doing. A thread that was not put on a CPU at
/// all since the sample before was waiting already; it waits so much longer, which counts when it
/// comes to run, for only then does run_delay have it. [one thread at a time]
class HeldTime {
 public:
  /// The time held for this sample, and for those before it that found the thread waiting:
  /// `pending`, of that thread, zero at first.
  Nanoseconds Estimate(const HeldCopies& sample, Nanoseconds& pending);

 private:
  // As measured on a virtual machine; a few hundred samples find the machine's own.
  RunningQuantile switches_{0.1, std::chrono::microseconds(15)};
};

}  // namespace pystrobe::remote
