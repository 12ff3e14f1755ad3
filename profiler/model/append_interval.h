// SPDX-License-Identifier: Apache-2.0
//
// How often what was recorded is handed on. [any thread]
#pragma once

#include <algorithm>
#include <chrono>

#include "profiler/base/clock.h"

namespace pystrobe {

/// How long until the next RecordingSink::Append of a recording that has lasted so long. One that
/// is cut off (a signal, os._exit) lacks what was not handed on: of a brief one too that is to be
/// the smaller part. In the end it is two seconds; what is handed on piece by piece takes more
/// bytes.
constexpr Nanoseconds AppendInterval(Nanoseconds lasted) {
  constexpr int kPart = 2;
  return std::clamp<Nanoseconds>(lasted / kPart, std::chrono::milliseconds(50),
                                 std::chrono::seconds(2));
}

}  // namespace pystrobe
