// SPDX-License-Identifier: Apache-2.0
//
// Finds ids by what they stand for, where the caller keeps what they stand for in a table of its
// own. 5 to 11 bytes an id: a HashMap, which has key and value in every slot and half of its slots
// free, takes 48 to 96, and a long recording has hundreds of thousands of stacks.
//
// [one thread at a time]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace pystrobe {

/// A hash table of ids with open addressing and linear probing. Nothing is ever removed.
class IdIndex {
 public:
  /// The id added before under `hash` that `is_it(id)` accepts; where there is none, `fresh`, which
  /// is added. `hash_of(id)`: the hash an id was added under, its bits well spread.
  template <typename IsIt, typename HashOf>
  uint32_t FindOrAdd(uint64_t hash, uint32_t fresh, IsIt is_it, HashOf hash_of) {
    if ((size_ + 1) * 4 > slots_.size() * 3) Grow(hash_of);
    size_t slot = hash & mask();
    for (; slots_[slot] != kFree; slot = (slot + 1) & mask()) {
      if (is_it(slots_[slot] - 1)) return slots_[slot] - 1;
    }
    slots_[slot] = fresh + 1;
    ++size_;
    return fresh;
  }

  /// The id added before under `hash` that `is_it(id)` accepts; nullopt where there is none.
  template <typename IsIt>
  std::optional<uint32_t> Find(uint64_t hash, IsIt is_it) const {
    if (slots_.empty()) return std::nullopt;
    for (size_t slot = hash & mask(); slots_[slot] != kFree; slot = (slot + 1) & mask()) {
      if (is_it(slots_[slot] - 1)) return slots_[slot] - 1;
    }
    return std::nullopt;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint32_t kFree = 0;  // else the id + 1
  static constexpr size_t kFewestSlots = 16;

  size_t mask() const { return slots_.size() - 1; }

  template <typename HashOf>
  void Grow(HashOf hash_of) {
    const std::vector<uint32_t> old = std::exchange(
        slots_, std::vector<uint32_t>(slots_.empty() ? kFewestSlots : slots_.size() * 2));
    for (const uint32_t entry : old) {
      if (entry == kFree) continue;
      size_t slot = hash_of(entry - 1) & mask();
      while (slots_[slot] != kFree) slot = (slot + 1) & mask();
      slots_[slot] = entry;
    }
  }

  std::vector<uint32_t> slots_;  // a power of two of them, at least a quarter free
  size_t size_ = 0;
};

}  // namespace pystrobe
