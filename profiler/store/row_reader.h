// SPDX-License-Identifier: Apache-2.0
//
// Rows of a column out of a file. [one thread at a time]
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "profiler/model/tables.h"
#include "profiler/store/bytes.h"

namespace pystrobe::store {

/// Numbers and ids that are checked as they are read: look at ok() once, after a row. The tables
/// outlive it.
class RowReader {
 public:
  RowReader(ByteSpan column, const Tables& tables) : in_(column), tables_(tables) {}

  bool empty() const { return in_.empty(); }
  bool ok() const { return in_.ok() && in_range_; }

  ByteReader& bytes() { return in_; }
  /// One below `limit`.
  uint32_t Below(uint64_t limit) {
    const uint64_t number = in_.Varint();
    if (number < limit) return static_cast<uint32_t>(number);
    in_range_ = false;
    return 0;
  }
  uint32_t Number() { return Below(uint64_t{std::numeric_limits<uint32_t>::max()} + 1); }
  StringId String() { return StringId{Below(tables_.string_count())}; }
  /// By its difference to another.
  StackId StackAfter(StackId last) {
    const uint64_t stack = Add(ToIndex(last), in_.Varint());
    if (stack < tables_.stack_count()) return StackId{static_cast<uint32_t>(stack)};
    in_range_ = false;
    return kEmptyStack;
  }
  std::array<uint32_t, 3> Three() {
    std::array<uint32_t, 3> three;
    for (uint32_t& one : three) one = Number();
    return three;
  }
  /// No writer's are negative or none at all.
  double Share() {
    const double number = in_.Double();
    if (!std::isfinite(number) || number < 0) in_range_ = false;
    return number;
  }

 private:
  ByteReader in_;
  const Tables& tables_;
  bool in_range_ = true;
};

}  // namespace pystrobe::store
