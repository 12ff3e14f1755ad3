// SPDX-License-Identifier: Apache-2.0
//
// A move-to-front list: what was used lately gets a small number. Encoder and decoder keep equal
// ones. [one thread at a time]
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace pystrobe::store {

/// The last `capacity` distinct values used, most recent first.
class RecencyList {
 public:
  explicit RecencyList(size_t capacity) : capacity_(capacity) {}

  /// Place of `value`, which then moves to the front; nothing if it is not in the list: Insert it.
  std::optional<uint8_t> Use(uint32_t value) {
    const auto found = std::find(values_.begin(), values_.end(), value);
    if (found == values_.end()) return std::nullopt;
    std::rotate(values_.begin(), found, found + 1);
    return static_cast<uint8_t>(found - values_.begin());
  }

  /// Value at `rank`, which then moves to the front; nothing if the list is shorter.
  std::optional<uint32_t> UseRank(uint8_t rank) {
    if (rank >= values_.size()) return std::nullopt;
    std::rotate(values_.begin(), values_.begin() + rank, values_.begin() + rank + 1);
    return values_.front();
  }

  /// Puts a value that is not in the list in front; the last one falls out of a full list.
  void Insert(uint32_t value) {
    if (values_.size() < capacity_) values_.push_back(value);
    std::shift_right(values_.begin(), values_.end(), 1);
    values_.front() = value;
  }

 private:
  size_t capacity_;  // at most 254
  std::vector<uint32_t> values_;
};

}  // namespace pystrobe::store
