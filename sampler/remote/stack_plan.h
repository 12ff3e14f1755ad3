// SPDX-License-Identifier: Apache-2.0
//
// What to copy of a thread so that one read brings its whole stack: a prediction from the sample
// before, corrected while the thread is still paused.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sampler/pyabi/chain_start.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/stack_copy.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::remote {

using pyabi::Address;

/// Per-thread prediction. 3.11+: the thread's data stack chunks, plus the few frames that lie
/// elsewhere (generators on the heap, the evaluation loop's own on the C stack). 3.8-3.10: the
/// pages on which its frame objects lay lately. [one thread at a time]
class StackPlan {
 public:
  StackPlan(const pyabi::Layout& layout, Address tstate);

  /// Adds to `copy`, as far as they fit, the ranges that the last stack makes likely, the thread
  /// state first.
  void AddPredicted(pyabi::StackCopy& copy);

  /// The thread's current frame according to the copy, 0 when it has none. Nullopt when the copy
  /// does not tell (3.11, 3.12: the evaluation loop was entered or left): then AddFirst adds what
  /// is missing, or returns false when the copy is full.
  std::optional<Address> FindFirst(const pyabi::StackCopy& copy) const;
  bool AddFirst(pyabi::StackCopy& copy) const;

  /// False when what FindFirst found is no frame yet; `walk`, `loop_frames`: of this copy.
  bool IsSettled(const pyabi::StackCopy& copy, const pyabi::WalkResult& walk,
                 const std::vector<Address>& loop_frames);

  /// What the last copy told of its thread's C stack (3.12, IsSettled) holds for others: it was not
  /// torn, or there will be none that is proved not to be.
  void Confirm() { start_.Confirm(); }

  /// For a copy without proof. In 3.11 any frame whose link to its caller was not written yet looks
  /// like the last of its chain; the real one, the thread's first, lies at the bottom of its data
  /// stack. True where there are no frames, and in other versions, which have other marks.
  bool BeginsAtBottom(const pyabi::StackCopy& copy,
                      const std::vector<pyabi::RawFrame>& frames) const;

  /// Adds a range that covers `missing`, a frame the walker did not find: as much of its chunk or
  /// page as is worth the system call. False when the copy is full.
  bool AddMissing(pyabi::StackCopy& copy, Address missing);

  /// Learns from a copy that was walked to its end.
  void Learn(const pyabi::StackCopy& copy, const std::vector<pyabi::RawFrame>& frames,
             const std::vector<Address>& loop_frames);

  /// Predicts nothing any more: the predicted ranges could not be read (unmapped meanwhile).
  void Reset();

  Address tstate() const { return start_.tstate(); }

 private:
  struct Chunk {
    Address address;
    uint32_t used;  ///< bytes from its start that hold frames
    bool Holds(Address at) const { return at >= address && at < address + used; }
  };
  struct Page {
    Address address;
    uint64_t last_use;
  };

  bool InAnyChunk(Address address);
  bool IsKnown(Address chunk) const;
  void LearnCframes(const pyabi::StackCopy& copy);
  void LearnChunks(const pyabi::StackCopy& copy);
  void LearnPages(const std::vector<pyabi::RawFrame>& frames);

  const pyabi::Layout* layout_;
  pyabi::ChainStart start_;
  uint32_t thread_bytes_;
  std::vector<Address> cframes_;  // 3.11, 3.12: the innermost, the one around it, but the outermost
  Chunk current_{0, 0};
  std::vector<Chunk> older_;     // nearest first
  Address reached_ = 0;          // the last chunk whose header was copied; 0: only the current one
  Chunk last_held_{0, 0};        // the chunk that held the frame asked for last
  std::vector<Address> extras_;  // frames outside of the chunks
  std::vector<Page> pages_;      // 3.8-3.10, by address
  uint64_t stamp_ = 0;
};

}  // namespace pystrobe::remote
