// SPDX-License-Identifier: Apache-2.0
//
// Where a record of CUPTI finds the origin of its launch: by its correlation id.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/launch_path.h"
#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// The origins of the last kSlots launches. A slot is one number, so that a launch is one store:
///
///   bits 0-26 path, 27-50 range, 51 set, 52-63 the upper bits of the correlation id
///
/// The lower bits of the id say which slot; so a slot that a later launch has taken is not
/// mistaken. Only the same id given anew is: CUPTI starts its ids over after cuptiFinalize, hence
/// Clear(). 8 MB of address space, of which what was used is memory.
class LaunchRing {
 public:
  static constexpr uint32_t kSlots = 1 << 20;
  static constexpr uint32_t kMaxPath = (1 << 27) - 1;
  static constexpr uint32_t kMaxRange = (1 << 24) - 1;

  /// Fails where there is no address space.
  static Result<LaunchRing> Make();

  /// A path or range that is too great is kept as 0, none. [any thread] [async-signal-safe]
  void Put(uint32_t correlation, LaunchOrigin origin);
  /// Nullopt where the launch was not seen, or more than kSlots were since. [any thread]
  std::optional<LaunchOrigin> Find(uint32_t correlation) const;
  /// Forgets all, and gives the memory back. What is put meanwhile may stay.
  void Clear();

 private:
  explicit LaunchRing(LazyArray<uint64_t> slots) : slots_(std::move(slots)) {}

  LazyArray<uint64_t> slots_;
};

}  // namespace pystrobe::gpu
