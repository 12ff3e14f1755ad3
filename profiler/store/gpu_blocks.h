// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did into blocks and back. A record is self-contained: it has definitions of its own.
// [one thread at a time]
#pragma once

#include <cstddef>

#include "profiler/base/error.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/tables.h"
#include "profiler/store/block.h"
#include "profiler/store/definitions.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// Cuts one record into blocks. Tables and record outlive it.
class GpuEncoder {
 public:
  GpuEncoder(const Tables& tables, const GpuRecord& record) : tables_(tables), record_(record) {}

  /// Appends to `columns` what comes next, until about `budget` bytes are there. True when nothing
  /// is left; else seal the block and call again.
  bool Encode(size_t budget, Columns& columns);

  /// What all that was encoded so far takes of a reader, besides the rows.
  DefinitionLimits taken() const { return definitions_.taken(); }

 private:
  void EncodeSum(const GpuSum& sum, Columns& columns);

  const Tables& tables_;
  const GpuRecord& record_;
  DefinitionEncoder definitions_;
  size_t devices_ = 0;
  size_t kernels_ = 0;
  size_t sums_ = 0;
  StackId last_stack_ = kEmptyStack;
};

/// Puts the blocks of one record together. Fails with kCorrupt on ids that were not defined before
/// and beyond the limits.
class GpuDecoder {
 public:
  explicit GpuDecoder(DefinitionLimits limits) : definitions_(limits) {}

  /// Whether it is a record's last block.
  static bool IsLast(const BlockUnpacker& block) { return !block.column(kGpuQuality).empty(); }

  Result<void> Decode(const BlockUnpacker& block);

  /// What came so far; ids are of tables().
  const GpuRecord& record() const { return record_; }
  const Tables& tables() const { return tables_; }

 private:
  Result<void> DecodeDevices(ByteSpan column);
  Result<void> DecodeKernels(ByteSpan column);
  Result<void> DecodeSums(const BlockUnpacker& block);
  Result<void> DecodeQuality(ByteSpan column);

  DefinitionDecoder definitions_;
  Tables tables_;
  GpuRecord record_;
  StackId last_stack_ = kEmptyStack;
};

}  // namespace pystrobe::store
