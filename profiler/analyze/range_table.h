// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, as a tree. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/model/range_record.h"

namespace pystrobe {

struct RangeRow {
  uint32_t range = 0;                            ///< index into RangeRecord::ranges
  uint32_t depth = 0;                            ///< in how many others it is
  uint32_t streams = 0;                          ///< that it put something on
  uint64_t span_ns = 0, busy_ns = 0, works = 0;  ///< as RangeOnStream has them, of all these
  /// The larger of its shares of the host's time and of the GPUs' spans, those of the ranges that
  /// are in no other being all; no larger than that of the range that it is in.
  double share = 0;
};

struct RangeTable {
  /// Each before those within it, which come by descending span, then time on the host.
  std::vector<RangeRow> rows;
  bool has_work = false;  ///< one put something on a stream
};

/// `stream`: of work on streams with this in their names alone.
RangeTable MakeRangeTable(const RangeRecord& record, const std::optional<std::string>& stream = {});

}  // namespace pystrobe
