// SPDX-License-Identifier: Apache-2.0
//
// Tables into columns and back: strings, functions, frames, stacks, threads.
// [one thread at a time]
#pragma once

#include <vector>

#include "profiler/base/error.h"
#include "profiler/model/tables.h"
#include "profiler/store/block.h"
#include "profiler/store/bytes.h"
#include "profiler/store/recency_list.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// For each frame the frames lately called from it. A line of a program calls few functions, so a
/// place in such a list is a much smaller number than a frame's id.
class CalleeLists {
 public:
  /// The list of the frame of `parent`; the empty stack has one too. Valid until the next call.
  RecencyList& Of(const Tables& tables, StackId parent);

 private:
  std::vector<RecencyList> lists_;  // by FrameId + 1; 0 is the empty stack's
};

/// Writes each definition once. It remembers what it has written of one growing Tables, so give it
/// always the same.
class DefinitionEncoder {
 public:
  /// Appends to `columns` what is new in `tables`, until about `budget` bytes are there. True when
  /// nothing is left; else seal the block and call again.
  bool Encode(const Tables& tables, size_t budget, Columns& columns);

  /// What all that was encoded so far takes of a reader.
  DefinitionLimits taken() const;

 private:
  void EncodeStack(const Tables& tables, uint32_t id, Columns& columns);
  void EncodeThreads(const Tables& tables, Columns& columns);

  uint64_t string_bytes_ = 0;
  uint32_t strings_ = 1;  // the empty string and the empty stack are there from the start
  uint32_t functions_ = 0;
  uint32_t frames_ = 0;
  uint32_t stacks_ = 1;
  Function last_function_{};
  FunctionId last_framed_{};
  FrameId last_new_callee_{};
  CalleeLists callees_;
  std::vector<StringId> thread_names_;  // by ThreadIndex, as written
  size_t thread_changes_ = 0;           // seen
};

/// Rebuilds the tables. Fails with kCorrupt on ids that were not defined before, on definitions
/// made twice and beyond the limits; the tables then hold what came before.
class DefinitionDecoder {
 public:
  explicit DefinitionDecoder(DefinitionLimits limits) : limits_(limits) {}

  /// Adds what the next block defines.
  Result<void> Decode(const BlockUnpacker& block, Tables& tables);

  /// What is left of the limits beside `tables`, which it has made.
  DefinitionLimits Left(const Tables& tables) const;

 private:
  Result<void> DecodeStrings(ByteSpan lengths, ByteSpan bytes, Tables& tables);
  Result<void> DecodeFunctions(const BlockUnpacker& block, Tables& tables);
  Result<void> DecodeFrames(ByteSpan column, Tables& tables);
  Result<void> DecodeStacks(const BlockUnpacker& block, Tables& tables);
  Result<void> DecodeThreads(ByteSpan column, Tables& tables);

  DefinitionLimits limits_;
  uint64_t string_bytes_ = 0;
  Function last_function_{};
  FunctionId last_framed_{};
  FrameId last_new_callee_{};
  CalleeLists callees_;
};

}  // namespace pystrobe::store
