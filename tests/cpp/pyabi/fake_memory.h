// SPDX-License-Identifier: Apache-2.0
//
// A target made of bytes, for tests.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

/// Blocks of bytes at chosen addresses; reading anything else fails.
class FakeMemory : public Memory {
 public:
  /// A block of `size` zeros at `address`.
  void Map(Address address, size_t size) { blocks_[address].resize(size); }

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void Put(Address address, const T& value) {
    Write(address, &value, sizeof value);
  }
  void Put(Address address, const std::string& text) { Write(address, text.data(), text.size()); }

  bool ReadAll(std::span<const ReadRequest> requests) const override {
    ++reads_;
    for (const ReadRequest& request : requests) {
      const std::byte* from = Find(request.address, request.size);
      if (from == nullptr) return false;
      std::memcpy(request.into, from, request.size);
    }
    return true;
  }
  int reads() const { return reads_; }

 private:
  void Write(Address address, const void* from, size_t size) {
    std::byte* to = const_cast<std::byte*>(Find(address, size));
    if (to == nullptr) std::abort();
    std::memcpy(to, from, size);
  }
  const std::byte* Find(Address address, size_t size) const {
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return nullptr;
    --block;
    const size_t offset = address - block->first;
    const bool inside = offset <= block->second.size() && size <= block->second.size() - offset;
    return inside ? block->second.data() + offset : nullptr;
  }

  std::map<Address, std::vector<std::byte>> blocks_;
  mutable int reads_ = 0;
};

/// Every address can be read and holds noise, biased towards small numbers and towards addresses.
class NoiseMemory : public Memory {
 public:
  explicit NoiseMemory(uint64_t seed) : random_(seed) {}

  bool ReadAll(std::span<const ReadRequest> requests) const override {
    if (random_() % 64 == 0) return false;
    for (const ReadRequest& request : requests) {
      auto* to = static_cast<std::byte*>(request.into);
      for (size_t at = 0; at < request.size; at += 8) {
        const uint64_t word = random_() >> random_() % 64;
        std::memcpy(to + at, &word, std::min<size_t>(8, request.size - at));
      }
    }
    return true;
  }

 private:
  mutable std::mt19937_64 random_;
};

/// One layout of every release from a table.
inline std::vector<Layout> TableLayouts() {
  std::vector<Layout> layouts;
  for (uint8_t minor = 8; minor <= 12; ++minor) {
    layouts.push_back(*LayoutFromTable({.major = 3, .minor = minor, .micro = 1}));
  }
  return layouts;
}

}  // namespace pystrobe::pyabi
