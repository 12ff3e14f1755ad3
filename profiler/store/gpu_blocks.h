// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did into blocks and back. A record is self-contained: it has definitions of its own.
// [one thread at a time]
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/tables.h"
#include "profiler/store/block.h"
#include "profiler/store/definitions.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// Of the last span of a sum; both 0 before its first.
struct LastOfSum {
  uint64_t duration_ns = 0, bytes = 0;
};

/// What a span builds on: its differences are to this. Encoder and decoder have it alike.
class SpanHistory {
 public:
  LastOfSum of(uint32_t sum) const { return sum < sums_.size() ? sums_[sum] : LastOfSum(); }
  uint64_t end_ns() const { return end_ns_; }
  uint64_t launch_ns() const { return launch_ns_; }
  uint32_t tid() const { return tid_; }
  void Add(const GpuSpan& span);

 private:
  std::vector<LastOfSum> sums_;
  uint64_t end_ns_ = 0, launch_ns_ = 0;
  uint32_t tid_ = 0;
};

/// What the stacks of idle times and waits are told as differences to.
struct LastPlaces {
  StackId from = kEmptyStack, to = kEmptyStack, wait = kEmptyStack;
};

/// The same of gaps.
struct LastGap {
  int64_t end_ns = 0;
  uint32_t tid = 0;
};

/// Whether there is room for it in a file, and sense in its spans.
Result<void> CheckGpuRecord(const GpuRecord& record);

/// Cuts one record into blocks. Tables and record outlive it.
class GpuEncoder {
 public:
  GpuEncoder(const Tables& tables, const GpuRecord& record) : tables_(tables), record_(record) {}

  /// Appends to `columns` what comes next, until about `budget` bytes are there. True when nothing
  /// is left; else seal the block and call again. Of a record that CheckGpuRecord() takes.
  bool Encode(size_t budget, Columns& columns);

  /// What all that was encoded so far takes of a reader, besides the rows.
  DefinitionLimits taken() const { return definitions_.taken(); }

 private:
  void EncodeSum(const GpuSum& sum, Columns& columns);
  void EncodeSpan(const GpuSpan& span, Columns& columns);
  void EncodeIdle(const GpuIdle& idle, Bytes& out);
  void EncodeWait(const GpuWait& wait, Bytes& out);
  void EncodeGap(const GpuGap& gap, Bytes& out);

  const Tables& tables_;
  const GpuRecord& record_;
  DefinitionEncoder definitions_;
  size_t devices_ = 0;
  size_t kernels_ = 0;
  size_t sums_ = 0;
  size_t spans_ = 0;
  size_t uses_ = 0;
  size_t idles_ = 0;
  size_t waits_ = 0;
  size_t gaps_ = 0;
  StackId last_stack_ = kEmptyStack;
  LastPlaces last_places_;
  LastGap last_gap_;
  SpanHistory history_;
};

/// Puts the blocks of one record together. Fails with kCorrupt on ids that were not defined before
/// and beyond the limits.
class GpuDecoder {
 public:
  explicit GpuDecoder(DefinitionLimits limits) : definitions_(limits) {}

  /// Whether it is a record's last block.
  static bool IsLast(const BlockUnpacker& block) { return !block.column(kGpuQuality).empty(); }

  Result<void> Decode(const BlockUnpacker& block);

  /// What came; ids are of tables(). Last.
  GpuRecord TakeRecord() { return std::move(record_); }
  const Tables& tables() const { return tables_; }
  /// What is left of the limits for other records.
  DefinitionLimits Left() const { return definitions_.Left(tables_); }

 private:
  Result<void> DecodeDevices(ByteSpan column);
  Result<void> DecodeKernels(ByteSpan column);
  Result<void> DecodeSums(const BlockUnpacker& block);
  Result<void> DecodeOccupancies(ByteSpan column);
  Result<void> DecodeSpans(const BlockUnpacker& block);
  Result<void> DecodeUses(ByteSpan column);
  Result<void> DecodeIdles(ByteSpan column);
  Result<void> DecodeWaits(ByteSpan column);
  Result<void> DecodeGaps(ByteSpan column);
  Result<void> DecodeQuality(ByteSpan column);

  DefinitionDecoder definitions_;
  Tables tables_;
  GpuRecord record_;
  StackId last_stack_ = kEmptyStack;
  LastPlaces last_places_;
  LastGap last_gap_;
  SpanHistory history_;
};

}  // namespace pystrobe::store
