// SPDX-License-Identifier: Apache-2.0
//
// When a launch was, and in which thread.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

struct LaunchMoment {
  int64_t time_ns = 0;  ///< CLOCK_MONOTONIC, as the call begins
  uint32_t tid = 0;     ///< the kernel's number of the thread

  bool operator==(const LaunchMoment&) const = default;
};

/// Those of the last LaunchRing::kSlots launches, by their correlation ids. 16 MB of address space,
/// of which what was used is memory.
class LaunchMoments {
 public:
  /// Fails where there is no address space.
  static Result<LaunchMoments> Make();

  /// `correlation` is not 0. [any thread] [async-signal-safe]
  void Put(uint32_t correlation, LaunchMoment moment);
  /// Nullopt where the launch was not seen, or is forgotten. [any thread]
  std::optional<LaunchMoment> Find(uint32_t correlation) const;
  /// Forgets all, and gives the memory back. What is put meanwhile may stay.
  void Clear();

 private:
  struct Slot {
    uint64_t time_ns;
    uint64_t whose;  // bits 0-31 tid, 32-63 the correlation id; 0: nobody's
  };
  explicit LaunchMoments(LazyArray<Slot> slots) : slots_(std::move(slots)) {}

  LazyArray<Slot> slots_;
};

}  // namespace pystrobe::gpu
