// SPDX-License-Identifier: Apache-2.0
//
// How a launch asks for what launched it. Who knows the interpreter implements it.
#pragma once

#include <cstdint>

namespace pystrobe::gpu {

/// The path is of whoever implements LaunchPath. Both are small: LaunchRing says how great they may
/// be.
struct LaunchOrigin {
  uint32_t path = 0;  ///< of calls that led to the launch; 0: none, a thread of no interpreter
  uint32_t range =
      0;  ///< that is open and that the program named: RangeInstances::LabelOf; 0: none

  bool operator==(const LaunchOrigin&) const = default;
};

/// The origin that work has whose launch was not seen, or so long ago that it is forgotten.
inline constexpr LaunchOrigin kUnknownOrigin{.path = ~uint32_t{0}, .range = 0};

/// [any thread, many at once] What a callback of the driver calls may be late: an object that was
/// given to a session is never destroyed.
class LaunchPath {
 public:
  /// Of the calling thread, which is inside a launch and need not hold the GIL. Once for each
  /// launch, so it is meant to take 0.25 us at most; it takes no lock that a launch may be under,
  /// does not allocate where the path was seen before (in a thread's first launch, what libraries
  /// keep for each thread), throws nothing and calls nothing of CUDA's.
  virtual LaunchOrigin Current() noexcept = 0;

 protected:
  ~LaunchPath() = default;
};

}  // namespace pystrobe::gpu
