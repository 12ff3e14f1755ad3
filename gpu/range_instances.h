// SPDX-License-Identifier: Apache-2.0
//
// Each time that a range is open, by a number that a launch can carry.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "gpu/launch_ring.h"
#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// The open ones and the last that were, in a ring: a slot is given to another instance only when
/// its own has ended and half as many have begun since as there are slots. So one that is open for
/// hours stays, however many come and go within it.
///
/// Numbers start over after 2^32; an instance that is not found is one that is forgotten.
class RangeInstances {
 public:
  static constexpr size_t kSlots = 1 << 20;  ///< 16 MB of address space

  struct Instance {
    uint32_t number;
    uint32_t node;    ///< RangeNodes's
    uint32_t parent;  ///< number of the instance that it is within; 0: none
    bool is_open;
    bool continues;  ///< another instance of the same time, which has counted
  };

  /// Fails where there is no address space.
  static Result<RangeInstances> Make();
  /// Of what nobody uses yet.
  RangeInstances(RangeInstances&& other) noexcept : slots_(std::move(other.slots_)) {}

  /// Forgets all, and gives the memory back; from now on there are `slots`, a power of two of at
  /// most kSlots. [while nobody begins or ends one]
  void Clear(size_t slots = kSlots);

  /// Its number; 0 where too many are open. [any thread]
  uint32_t Begin(uint32_t node, uint32_t parent, bool continues = false);
  void End(uint32_t number);

  /// What a launch carries of a number: LaunchOrigin::range. Of none but 0 it is 0.
  static uint32_t LabelOf(uint32_t number) { return number & LaunchRing::kMaxRange; }
  /// [any thread]
  std::optional<Instance> FindLabel(uint32_t label) const;
  std::optional<Instance> Find(uint32_t number) const;
  bool IsOpen(uint32_t number) const;

 private:
  // Whose: bits 32-63 the number; 0-31 the next number at its end, until then its own. 0: nobody's.
  struct Slot {
    uint64_t whose;
    uint64_t what;  // bit 63 whether it continues, 32-62 the node, 0-31 the parent
  };

  explicit RangeInstances(LazyArray<Slot> slots) : slots_(std::move(slots)) {}
  std::optional<Instance> FindBy(uint32_t number, uint32_t bits) const;

  LazyArray<Slot> slots_;
  std::atomic<uint32_t> mask_{kSlots - 1};
  std::atomic<uint32_t> next_{1};
};

}  // namespace pystrobe::gpu
