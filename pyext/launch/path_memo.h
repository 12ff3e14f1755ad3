// SPDX-License-Identifier: Apache-2.0
//
// Which path a hash of frames stood for, the last time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::launch {

/// A cache: what is put may be gone at any time, as of places that are taken the last ones give
/// way. A hash stands for one path for ever; where it may come to stand for another, it needs
/// another seed.
class PathMemo {
 public:
  static constexpr size_t kSlots = 1 << 17;  ///< 2 MB of address space
  static constexpr size_t kTries = 8;

  /// Fails where there is no address space.
  static Result<PathMemo> Make() {
    auto slots = LazyArray<Slot>::Make(kSlots);
    if (!slots) return std::unexpected(slots.error());
    return PathMemo(*std::move(slots));
  }

  /// [any thread] [async-signal-safe]
  std::optional<uint32_t> Find(uint64_t hash) const {
    for (size_t i = 0; i < kTries; ++i) {
      const Slot& slot = slots_[PlaceOf(hash, i)];
      if (Word(slot.hash).load(std::memory_order_acquire) != hash) continue;
      const uint64_t path = Word(slot.path).load(std::memory_order_acquire);
      // Given to another in between: its hash is taken away before the path changes.
      if (Word(slot.hash).load(std::memory_order_relaxed) != hash) return std::nullopt;
      return static_cast<uint32_t>(path);
    }
    return std::nullopt;
  }

  /// `hash` is not 0. [one thread at a time]
  void Put(uint64_t hash, uint32_t path) {
    size_t place = PlaceOf(hash, ++evictions_ % kTries);
    for (size_t i = 0; i < kTries; ++i) {
      const uint64_t taken = slots_[PlaceOf(hash, i)].hash;
      if (taken == hash) return;
      if (taken != 0) continue;
      place = PlaceOf(hash, i);
      break;
    }
    const Slot& slot = slots_[place];
    Word(slot.hash).store(0, std::memory_order_relaxed);
    Word(slot.path).store(path, std::memory_order_release);
    Word(slot.hash).store(hash, std::memory_order_release);
  }

 private:
  struct Slot {
    uint64_t hash;
    uint64_t path;
  };

  explicit PathMemo(LazyArray<Slot> slots) : slots_(std::move(slots)) {}
  static size_t PlaceOf(uint64_t hash, size_t attempt) { return (hash + attempt) % kSlots; }
  static std::atomic_ref<uint64_t> Word(const uint64_t& word) {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word));
  }

  LazyArray<Slot> slots_;
  size_t evictions_ = 0;
};

}  // namespace pystrobe::launch
