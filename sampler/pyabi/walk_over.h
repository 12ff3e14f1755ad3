// SPDX-License-Identifier: Apache-2.0
//
// The one frame walker: what walk.h describes, over any copy of a thread's frames and into any
// list. Those of walk.h are a StackCopy and vectors; a signal handler has its own, which never
// allocate. [as safe as the copy and the lists]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sampler/pyabi/bytes.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::pyabi {
namespace walk {

inline constexpr uint8_t kOwnedByGenerator = 1;  // enum _frameowner, all versions
inline constexpr uint8_t kHighestOwner = 4;
inline constexpr uint8_t kFirstInterpreterOwner = 3;
inline constexpr PyVersion kPython310{3, 10}, kPython312{3, 12};

// enum _framestate of 3.10 (Include/cpython/frameobject.h): what it is until it returns.
inline constexpr int8_t kExecuting = 0, kUnwinding = 2;

// What a walk needs of the layout. A copy: what is written to the frames cannot change it, as the
// compiler would have to assume of the layout, once for each frame.
struct Shape {
  explicit Shape(const Layout& layout)
      : at(layout.frame),
        has_owner(layout.frame_style == FrameStyle::kInterpreterFrames),
        before_310(layout.version < kPython310),
        before_312(layout.version < kPython312) {}

  const decltype(Layout::frame) at;
  const bool has_owner, before_310, before_312;
};

using FrameBytes = std::span<const std::byte>;

inline RawFrame LoadFrame(const Shape& shape, Address address, FrameBytes bytes) {
  const auto& at = shape.at;
  RawFrame frame;
  frame.frame = address;
  frame.code = Load<Address>(bytes, at.code) & ~at.code_tag_mask;
  if (!shape.has_owner) {
    frame.instruction = static_cast<uint64_t>(int64_t{Load<int32_t>(bytes, at.instruction)});
    return frame;
  }
  frame.instruction = Load<uint64_t>(bytes, at.instruction);
  frame.owner = Load<uint8_t>(bytes, at.owner);
  if (at.is_entry != kAbsent) frame.is_entry = Load<uint8_t>(bytes, at.is_entry) != 0;
  if (at.tlbc_index != kAbsent) {
    frame.tlbc_index = static_cast<uint32_t>(Load<int32_t>(bytes, at.tlbc_index));
  }
  return frame;
}

inline bool IsExecuting(const Shape& shape, FrameBytes bytes) {
  const auto state = Load<int8_t>(bytes, shape.at.executing);
  if (shape.before_310) return state != 0;
  return state == kExecuting || state == kUnwinding;
}

// Of a frame that has called another, or is the first of its chain.
inline bool WasLeft(const Shape& shape, FrameBytes bytes, bool is_first) {
  if (shape.at.executing == kAbsent) return false;
  if (is_first && Load<Address>(bytes, shape.at.generator) != 0) return true;
  return !IsExecuting(shape, bytes);
}

// Of frame number `index`, which is Python's.
inline void NoteExecuting(const Shape& shape, FrameBytes bytes, size_t index, bool is_entry,
                          WalkResult& walk) {
  if (walk.left_innermost_run || shape.at.stacktop == kAbsent) return;
  if (Load<int32_t>(bytes, shape.at.stacktop) == -1) walk.executing = index;
  walk.left_innermost_run = is_entry;
}

// With which frame a run of the evaluation loop begins: a flag of the Python frame in 3.11, a frame
// on the C stack in 3.12.
inline bool BeginsLoop(const Shape& shape, const RawFrame& frame) {
  return shape.before_312 ? frame.is_entry : frame.owner >= kFirstInterpreterOwner;
}

inline WalkStatus StatusAtEnd(const Shape& shape, bool any, uint8_t last_owner) {
  // An empty chain is a thread without Python frames: just started, or about to end.
  if (!any || !shape.has_owner) return WalkStatus::kComplete;
  const bool whole =
      shape.before_312 ? last_owner != kOwnedByGenerator : last_owner >= kFirstInterpreterOwner;
  return whole ? WalkStatus::kComplete : WalkStatus::kIncomplete;
}

template <typename T>
bool Append(std::vector<T>& list, const T& element) {
  list.push_back(element);
  return true;
}
template <typename List, typename T>
bool Append(List& list, const T& element) {
  return list.Append(element);
}

}  // namespace walk

/// ResumeWalk of walk.h. `Copy` has `const std::byte* Find(Address, size_t)`, null for what it does
/// not have, whose bytes are good until the next Find; and byte_count(), of all it may have. A list
/// that is full ends the walk with kMissing.
template <typename Copy, typename Frames, typename LoopFrames>
void ResumeWalkOver(Copy& copy, const Layout& layout, Frames& frames, LoopFrames& loop_frames,
                    WalkResult& result) {
  const walk::Shape shape(layout);
  const size_t size = shape.at.size;
  const Address start = std::exchange(result.missing, 0);
  result.status = WalkStatus::kBroken;
  // Frames do not overlap, so a chain with more of them than the copy has room for is a cycle.
  const size_t most = copy.byte_count() / size;
  const auto Miss = [&result](Address address) {
    result.status = WalkStatus::kMissing;
    result.missing = address;
  };
  size_t count = frames.size(), seen = count + loop_frames.size();
  for (Address address = start; address != 0; ++seen) {
    if (seen > most) return;
    const std::byte* found = copy.Find(address, size);
    if (found == nullptr) return Miss(address);
    const walk::FrameBytes bytes(found, size);
    const RawFrame frame = walk::LoadFrame(shape, address, bytes);
    result.last_owner = frame.owner;
    if (frame.owner > walk::kHighestOwner) return;
    if (IsPythonOwner(frame.owner)) {  // frame objects have 0 here
      if (frame.code == 0) return;
      walk::NoteExecuting(shape, bytes, count, frame.is_entry, result);
      if (!walk::Append(frames, frame)) return Miss(address);
      ++count;
    } else {
      if (!walk::Append(loop_frames, address)) return Miss(address);
      if (count != 0) result.left_innermost_run = frames.back().is_entry = true;
    }
    address = Load<Address>(bytes, shape.at.previous);
    const bool is_first = address == 0;
    if (count > 1 || is_first) result.has_left_frame |= walk::WasLeft(shape, bytes, is_first);
    if (shape.has_owner && !result.loop_caller && walk::BeginsLoop(shape, frame)) {
      result.loop_caller = address;
    }
  }
  result.status = walk::StatusAtEnd(shape, seen != 0, result.last_owner);
}

/// Walk of walk.h, likewise.
template <typename Copy, typename Frames, typename LoopFrames>
WalkResult WalkOver(Copy& copy, const Layout& layout, Address first, Frames& frames,
                    LoopFrames& loop_frames) {
  frames.clear();
  loop_frames.clear();
  WalkResult result{.status = WalkStatus::kMissing, .missing = first};
  ResumeWalkOver(copy, layout, frames, loop_frames, result);
  return result;
}

}  // namespace pystrobe::pyabi
