// SPDX-License-Identifier: Apache-2.0
//
// A moment of the sampling clock.
#pragma once

#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

struct Tick {
  uint64_t number = 0;     ///< from 1 on
  Nanoseconds time{};      ///< CLOCK_MONOTONIC
  Nanoseconds previous{};  ///< that of the tick before
  Nanoseconds from{};      ///< what it sees stands for the time from here on: `previous`, or later
                           ///< where the tick before is long ago
  bool late = false;
};

}  // namespace pystrobe::remote
