// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named into blocks and back. A record is self-contained: it has strings
// of its own. [one thread at a time]
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/range_record.h"
#include "profiler/model/tables.h"
#include "profiler/store/block.h"
#include "profiler/store/definitions.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// What a span builds on: its differences are to this. Encoder and decoder have it alike.
class RangeSpanHistory {
 public:
  /// Of the last span of `range`; 0 before its first.
  uint64_t duration_ns(uint32_t range) const {
    return range < durations_.size() ? durations_[range] : 0;
  }
  uint64_t end_ns() const { return end_ns_; }
  uint32_t tid() const { return tid_; }
  void Add(const RangeSpan& span);

 private:
  std::vector<uint64_t> durations_;
  uint64_t end_ns_ = 0;
  uint32_t tid_ = 0;
};

/// Whether there is room for it in a file, and sense in it.
Result<void> CheckRangeRecord(const RangeRecord& record);

/// Cuts one record into blocks. Of `tables` it takes the names that the record has, and nothing
/// else. The record outlives it.
class RangeEncoder {
 public:
  RangeEncoder(const Tables& tables, const RangeRecord& record);

  /// Appends to `columns` what comes next, until about `budget` bytes are there. True when nothing
  /// is left; else seal the block and call again. Of a record that CheckRangeRecord() takes.
  bool Encode(size_t budget, Columns& columns);

  /// What all that was encoded so far takes of a reader, besides the rows.
  DefinitionLimits taken() const { return definitions_.taken(); }

 private:
  void EncodeRange(const NamedRange& range, Columns& columns);
  void EncodeStream(const RangeOnStream& row, Columns& columns);
  void EncodeSpan(const RangeSpan& span, Columns& columns);

  const RangeRecord& record_;
  Tables names_;
  HashMap<uint32_t, StringId> name_of_;  // by StringId of the caller's
  DefinitionEncoder definitions_;
  size_t ranges_ = 0;
  size_t streams_ = 0;
  size_t spans_ = 0;
  uint32_t last_range_ = 0;
  RangeSpanHistory history_;
};

/// Puts the blocks of one record together. Fails with kCorrupt on ids that were not defined before
/// and beyond the limits.
class RangeDecoder {
 public:
  explicit RangeDecoder(DefinitionLimits limits) : definitions_(limits) {}

  /// Whether it is a record's last block.
  static bool IsLast(const BlockUnpacker& block) { return !block.column(kRangeQuality).empty(); }

  Result<void> Decode(const BlockUnpacker& block);

  /// What came; ids are of tables(). Last.
  RangeRecord TakeRecord() { return std::move(record_); }
  const Tables& tables() const { return tables_; }

 private:
  Result<void> DecodeRanges(ByteSpan column);
  Result<void> DecodeStreams(ByteSpan column);
  Result<void> DecodeSpans(const BlockUnpacker& block);

  DefinitionDecoder definitions_;
  Tables tables_;
  RangeRecord record_;
  uint32_t last_range_ = 0;
  RangeSpanHistory history_;
};

}  // namespace pystrobe::store
