// SPDX-License-Identifier: Apache-2.0
//
// What is read of each traced call. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pystrobe {

enum class CallClock : uint8_t {
  kBoth,  ///< elapsed time and the thread's CPU time
  kWall,  ///< elapsed time alone
  kCpu,   ///< both, CPU time to be shown first
};

/// "both", "wall", "cpu".
constexpr std::string_view ClockName(CallClock clock) {
  switch (clock) {
    case CallClock::kBoth:
      return "both";
    case CallClock::kWall:
      return "wall";
    case CallClock::kCpu:
      return "cpu";
  }
  return "";
}

constexpr std::optional<CallClock> ClockByName(std::string_view name) {
  for (const CallClock clock : {CallClock::kBoth, CallClock::kWall, CallClock::kCpu}) {
    if (ClockName(clock) == name) return clock;
  }
  return std::nullopt;
}

}  // namespace pystrobe
