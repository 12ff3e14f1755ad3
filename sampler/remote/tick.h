// SPDX-License-Identifier: Apache-2.0
//
// A moment of the sampling clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Times are CLOCK_MONOTONIC.
struct Tick {
  uint64_t number = 0;     ///< from 1 on
  Nanoseconds time{};      ///< when it was asked to look; of a look that is made, when that began
  Nanoseconds previous{};  ///< that of the tick before
  Nanoseconds longest = Nanoseconds::max();  ///< what is seen stands for no more time than this
  Nanoseconds due_by = Nanoseconds::max();   ///< a look after that is late
  Nanoseconds at{};                          ///< when to look, where that is later than `time`

  /// What is seen stands for the time from here on: `previous`, or later where that is long ago.
  Nanoseconds from() const { return std::max(previous, time - longest); }
  bool late() const { return time > due_by; }
};

}  // namespace pystrobe::remote
