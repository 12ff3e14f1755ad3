// SPDX-License-Identifier: Apache-2.0
//
// Where a thread's chain of frames begins, and whether what begins there is one yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::pyabi {

/// Of one thread state. `Copy`, everywhere: as ResumeWalkOver in walk_over.h has it, with
/// `T ValueOr0<T>(Address)` besides. [one thread at a time] [async-signal-safe where the copy is]
class ChainStart {
 public:
  /// What a _PyCFrame has side by side: current_frame, previous.
  static constexpr uint32_t kCframeBytes = 2 * sizeof(Address);

  ChainStart(const Layout& layout, Address tstate)
      : layout_(&layout), tstate_(tstate), offset_(kLargestLoop), offset_seen_(kLargestLoop) {}

  Address tstate() const { return tstate_; }

  /// Another copy is looked at from now on.
  void Begin() { offset_seen_ = kLargestLoop; }

  /// The thread's current frame according to the copy, 0 when it has none. Nullopt when the copy
  /// does not tell (3.11, 3.12: the evaluation loop was entered or left): then MissingCframe is
  /// what it lacks.
  template <typename Copy>
  std::optional<Address> FindFirst(Copy& copy) const {
    const auto& t = layout_->thread;
    if (t.frame != kAbsent) return copy.template ValueOr0<Address>(tstate_ + t.frame);
    const Address cframe = copy.template ValueOr0<Address>(tstate_ + t.cframe);
    if (cframe == 0) return 0;
    const auto first = CurrentFrameOf(copy, cframe);
    const Address outer = PreviousOf(copy, cframe);
    if (outer != 0 && !CurrentFrameOf(copy, outer)) return std::nullopt;
    return first;
  }

  /// The address of kCframeBytes that are not in the copy.
  template <typename Copy>
  Address MissingCframe(Copy& copy) const {
    Address cframe = copy.template ValueOr0<Address>(tstate_ + layout_->thread.cframe);
    if (CurrentFrameOf(copy, cframe)) cframe = PreviousOf(copy, cframe);
    return cframe + layout_->cframe.current_frame;
  }

  /// False when what FindFirst found is no frame yet. In 3.11 and 3.12 a run of the evaluation loop
  /// announces its _PyCFrame before it fills in the current frame (_PyEval_EvalFrameDefault in
  /// Python/ceval.c), so for some instructions the thread state leads to what an earlier run left
  /// on the C stack. Where the chain leaves the innermost run it must arrive at the frame that is
  /// current in the run around it, and in 3.12 the frame with which the run begins must lie beside
  /// its _PyCFrame. `walk`, `loop_frames`: of this copy.
  template <typename Copy, typename LoopFrames>
  bool IsSettled(Copy& copy, const WalkResult& walk, const LoopFrames& loop_frames) {
    const auto& t = layout_->thread;
    if (t.cframe == kAbsent) return true;
    const Address cframe = copy.template ValueOr0<Address>(tstate_ + t.cframe);
    if (cframe == 0 || cframe == tstate_ + t.root_cframe) return true;
    const Address outer = PreviousOf(copy, cframe);
    // Within a run there is a frame; but a greenlet has a _PyCFrame of its own around its runs.
    if (!walk.loop_caller) return FindFirst(copy) == 0 && outer == tstate_ + t.root_cframe;
    if (walk.loop_caller != CurrentFrameOf(copy, outer)) return false;
    if (!loop_frames.empty() && !IsBesideCframe(cframe, *loop_frames.begin())) return false;
    // A frame that was popped still reads like one.
    const Address first = FindFirst(copy).value_or(0);
    const Address chunk = copy.template ValueOr0<Address>(tstate_ + t.datastack_chunk);
    const auto size = copy.template ValueOr0<uint64_t>(chunk + layout_->chunk.size);
    const bool in_chunk = first >= chunk && first < chunk + size;
    return !in_chunk || first < copy.template ValueOr0<Address>(tstate_ + t.datastack_top);
  }

  /// What the last copy told of its thread's C stack (3.12, IsSettled) holds for others: it was not
  /// torn, or there will be none that is proved not to be.
  void Confirm() { offset_ = std::min(offset_, offset_seen_); }

 private:
  // Of the evaluation loop's C frame, by far (3.12: 0x180 bytes with GCC -O3).
  static constexpr uint64_t kSmallestLoop = 128, kLargestLoop = 4096;

  template <typename Copy>
  std::optional<Address> CurrentFrameOf(Copy& copy, Address cframe) const {
    const Address at = cframe + layout_->cframe.current_frame;
    if (copy.Find(at, kCframeBytes) == nullptr) return std::nullopt;
    return copy.template ValueOr0<Address>(at);
  }

  template <typename Copy>
  Address PreviousOf(Copy& copy, Address cframe) const {
    return copy.template ValueOr0<Address>(cframe + layout_->cframe.previous);
  }

  // Both are locals of one C function, so their distance is always the same; runs further out,
  // which is where an outdated _PyCFrame may lead, lie at higher addresses.
  bool IsBesideCframe(Address cframe, Address loop_frame) {
    offset_seen_ = loop_frame - cframe;
    return offset_seen_ < std::min(offset_, offset_seen_) + kSmallestLoop;
  }

  const Layout* layout_;
  Address tstate_;
  uint64_t offset_;       // 3.12: of the loop's frame from its _PyCFrame, the least confirmed
  uint64_t offset_seen_;  // in the last copy
};

}  // namespace pystrobe::pyabi
