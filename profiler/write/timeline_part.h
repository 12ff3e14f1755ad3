// SPDX-License-Identifier: Apache-2.0
//
// The part of the time that a profile is of, for spans by the clock of the machine.
// [any thread, const]
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "profiler/analyze/profile.h"
#include "profiler/base/wrapping.h"

namespace pystrobe::write {

class TimelinePart {
 public:
  explicit TimelinePart(const Profile& profile)
      : start_ns_(profile.recording->metadata().start_monotonic_ns),
        since_ns_(WrappingAdd(start_ns_, profile.since_ns)),
        until_ns_(std::numeric_limits<int64_t>::max()) {
    // A device's clock may be a little ahead of the end.
    if (profile.until_ns < profile.recording->quality().duration_ns) {
      until_ns_ = WrappingAdd(start_ns_, profile.until_ns);
    }
  }

  bool Has(int64_t time_ns) const { return time_ns >= since_ns_ && time_ns <= until_ns_; }
  bool Meets(int64_t begin_ns, int64_t end_ns) const {
    return begin_ns <= until_ns_ && end_ns >= since_ns_;
  }
  /// Since the start of the recording. Not below 0, whatever a file says that its start was.
  int64_t SinceStart(int64_t time_ns) const {
    return std::max<int64_t>(0, WrappingSubtract(time_ns, start_ns_));
  }
  /// The same of the ends of a span that it meets, cut to it.
  int64_t CutBegin(int64_t begin_ns) const { return SinceStart(std::max(begin_ns, since_ns_)); }
  int64_t CutEnd(int64_t end_ns) const { return SinceStart(std::min(end_ns, until_ns_)); }

 private:
  int64_t start_ns_;
  int64_t since_ns_, until_ns_;
};

}  // namespace pystrobe::write
