// SPDX-License-Identifier: Apache-2.0
//
// When a sample may be expected, as writer and reader both work it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "profiler/model/deadline_series.h"

namespace pystrobe::store {

/// The deadlines that samples were due at. What it answers depends on what it was asked before, so
/// a reader must ask in the writer's order. [one thread at a time]
class DueTimes {
 public:
  static constexpr size_t kMostDrawn = 1 << 16;  ///< for one block
  static constexpr size_t kMostKept = 1 << 15;   ///< from one block to the next
  /// Limits of what Add takes, far from those of the integers.
  static constexpr int64_t kMostPeriodNs = int64_t{1} << 46;
  static constexpr int64_t kMostTimeNs = int64_t{1} << 60;

  /// Before the samples of each block.
  void BeginBlock();
  /// Deadlines after series.last_ns are drawn from it. False when it is over the limits.
  [[nodiscard]] bool Add(const DeadlineSeries& series);
  /// The first deadline after `us`, rounded down to us; where none is known, `us` itself.
  uint64_t FirstAfter(uint64_t us);

 private:
  bool Draw();

  DeadlineSeries series_;
  std::deque<uint64_t> due_us_;
  size_t drawn_ = 0;  // for this block
};

}  // namespace pystrobe::store
