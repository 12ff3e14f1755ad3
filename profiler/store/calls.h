// SPDX-License-Identifier: Apache-2.0
//
// The calls of a timeline into columns and back. [one thread at a time]
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/model/recording.h"
#include "profiler/store/block.h"
#include "profiler/store/bytes.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

using CallColumns = std::array<Bytes, kCallColumnCount>;

/// Which stack each thread is in, and which was entered last from each stack: what encoder and
/// decoder know alike.
class CallPlaces {
 public:
  struct Thread {
    uint64_t time_ns = 0;
    StackId stack = kEmptyStack;
  };
  Thread& Of(ThreadIndex thread) {
    const size_t index = ToIndex(thread);
    if (index >= threads_.size()) threads_.resize(index + 1);
    return threads_[index];
  }
  /// kEmptyStack: none was.
  StackId LastFrom(StackId stack) const {
    const size_t index = ToIndex(stack);
    return index < last_.size() ? last_[index] : kEmptyStack;
  }
  void Enter(StackId from, StackId stack) {
    const size_t index = ToIndex(from);
    if (index >= last_.size()) last_.resize(index + 1, kEmptyStack);
    last_[index] = stack;
  }

 private:
  std::vector<Thread> threads_;  // by ThreadIndex
  std::vector<StackId> last_;    // by StackId
};

class CallEncoder {
 public:
  /// Appends to all columns. Every stack of `calls` must have been written before the block is.
  void Encode(ThreadIndex thread, std::span<const CallEvent> calls, const Tables& tables,
              CallColumns& columns);

 private:
  CallPlaces places_;
};

class CallDecoder {
 public:
  /// `tables` are those of the whole file.
  explicit CallDecoder(const Tables& tables) : tables_(tables) {}

  /// Calls `visit` for each group of the next block. Fails with kCorrupt; calls before the damage
  /// may have been visited.
  Result<void> Decode(const BlockUnpacker& block, RecordingSource::CallVisitor visit);

 private:
  std::optional<StackId> Follow(StackId from, uint8_t move, ByteReader& stacks);

  const Tables& tables_;
  CallPlaces places_;
  std::vector<CallEvent> calls_;
};

}  // namespace pystrobe::store
