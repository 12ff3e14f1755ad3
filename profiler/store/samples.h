// SPDX-License-Identifier: Apache-2.0
//
// Samples into columns and back. [one thread at a time]
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/sample.h"
#include "profiler/model/tables.h"
#include "profiler/store/block.h"
#include "profiler/store/bytes.h"
#include "profiler/store/due_times.h"
#include "profiler/store/recency_list.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// Writes samples in microseconds. What a sample loses by rounding its thread's next ones get back:
///   time_us           = time_ns rounded down
///   sum of cpu_us     = sum of the thread's cpu_ns so far, rounded down
///   sum of wall_us    = sum of the thread's wall_ns so far less time_ns mod 1000, rounded up
///                       (never falling)
/// so that no sum of a thread is ever off by 1 us or more. The last rule looks odd; it makes
/// wall_us the difference of two time_us wherever wall_ns is that of two time_ns, which is what
/// keeps the column of exceptions empty. wall_ns and cpu_ns must be below 2^62.
class SampleEncoder {
 public:
  /// Samples to come are due at the times of this series.
  void Expect(const DeadlineSeries& series) { expected_.push_back(series); }

  /// Appends all columns of `samples`, which are in time order for each thread. Every stack in
  /// `tables` must have been written by then.
  void Encode(std::span<const Sample> samples, const Tables& tables, Columns& columns);

 private:
  struct ThreadState {
    int64_t time_us = 0;
    int64_t wall_rest_ns = 0;  // what the sum of wall_ns has more than what was written
    int64_t cpu_rest_ns = 0;   // likewise
  };
  void EncodeDeadlines(Columns& columns);
  void EncodeTimes(const Sample& sample, ThreadState& thread, Columns& columns);
  void EncodeStack(StackId stack, const Tables& tables, Columns& columns);

  std::vector<DeadlineSeries> expected_;  // since the last block with samples
  DueTimes due_;
  std::vector<ThreadState> threads_;
  RecencyList stacks_{kStackListSize};
  uint32_t highest_stack_ = 0;
  std::vector<Sample> grouped_;
  uint64_t wall_as_expected_ = 0;  // samples since the last exception in this block
  uint64_t count_as_expected_ = 0;
};

/// Reads them back, times in whole microseconds.
class SampleDecoder {
 public:
  /// `tables` are those of the whole file, `version` that of its format.
  SampleDecoder(const Tables& tables, uint32_t version) : tables_(tables), version_(version) {}

  /// Calls `visit` for each sample of the next block. Fails with kCorrupt; samples before the
  /// damage may have been visited.
  Result<void> Decode(const BlockUnpacker& block, FunctionRef<void(const Sample&)> visit);

 private:
  bool DecodeDeadlines(ByteSpan column);
  uint64_t DecodeTime(uint64_t before_us, uint64_t stored);
  std::optional<StackId> DecodeStack(ByteReader& ranks, ByteReader& ids);

  const Tables& tables_;
  uint32_t version_;
  DueTimes due_;
  size_t stack_count_ = 1;  // defined up to this block

  std::vector<uint64_t> thread_time_us_;
  RecencyList stacks_{kStackListSize};
  uint32_t highest_stack_ = 0;
};

}  // namespace pystrobe::store
