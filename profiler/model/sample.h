// SPDX-License-Identifier: Apache-2.0
//
// What one look at one thread brought.
#pragma once

#include <cstdint>

#include "profiler/model/ids.h"

namespace pystrobe {

/// Bits of Sample::flags.
enum SampleFlag : uint8_t {
  kSampleGil = 1 << 0,     ///< the thread held its interpreter's lock (free-threaded: was attached)
  kSampleOnCpu = 1 << 1,   ///< the thread used CPU time
  kSampleIdle = 1 << 2,    ///< a run-length entry: the thread did not run in the whole interval
  kSampleMarked = 1 << 3,  ///< the copy was not proved consistent: the stack may be torn
  kSampleIncomplete =
      1 << 4,  ///< the chain did not reach the thread's base frame, or a frame has no name
  kSampleLate = 1 << 5,    ///< taken more than one period after its deadline, or a ms
  kSampleUnseen = 1 << 6,  ///< no look was made then: what the stack was is not known
  kSampleKernel = 1 << 7,  ///< the thread used its CPU time in the kernel; with Metadata::native
};

/// One look at one thread, standing for the time since the look before. The three weights make the
/// three views: wall takes wall_ns, cpu takes cpu_ns, gil takes wall_ns of samples with kSampleGil.
///
/// Times are quantised to microseconds when stored; the sums are not: the remainder is carried to
/// the thread's next sample.
struct Sample {
  int64_t time_ns = 0;   ///< end of the interval, since the start of the recording
  uint64_t wall_ns = 0;  ///< its length
  uint64_t cpu_ns = 0;   ///< of what the kernel charged the thread, sooner or later: the sums agree
  ThreadIndex thread{};
  StackId stack = kEmptyStack;
  uint32_t count = 1;  ///< deadlines covered: 1; more for a run-length entry of an idle thread; 0
                       ///< for a part of the time between two of them
  uint8_t flags = 0;   ///< SampleFlag bits

  friend bool operator==(const Sample&, const Sample&) = default;
};

}  // namespace pystrobe
