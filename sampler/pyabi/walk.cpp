// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/walk.h"

#include "sampler/pyabi/bytes.h"

namespace pystrobe::pyabi {
namespace {

constexpr uint8_t kOwnedByGenerator = 1;  // enum _frameowner, all versions
constexpr uint8_t kHighestOwner = 4;
constexpr uint8_t kFirstInterpreterOwner = 3;
constexpr PyVersion kPython310{3, 10}, kPython312{3, 12};

RawFrame LoadFrame(const Layout& layout, Address address, std::span<const std::byte> bytes) {
  const auto& f = layout.frame;
  RawFrame frame;
  frame.frame = address;
  frame.code = Load<Address>(bytes, f.code) & ~f.code_tag_mask;
  if (layout.frame_style == FrameStyle::kFrameObjects) {
    frame.instruction = static_cast<uint64_t>(int64_t{Load<int32_t>(bytes, f.instruction)});
    return frame;
  }
  frame.instruction = Load<uint64_t>(bytes, f.instruction);
  frame.owner = Load<uint8_t>(bytes, f.owner);
  if (f.is_entry != kAbsent) frame.is_entry = Load<uint8_t>(bytes, f.is_entry) != 0;
  if (f.tlbc_index != kAbsent) {
    frame.tlbc_index = static_cast<uint32_t>(Load<int32_t>(bytes, f.tlbc_index));
  }
  return frame;
}

// enum _framestate of 3.10 (Include/cpython/frameobject.h): what it is until it returns.
constexpr int8_t kExecuting = 0, kUnwinding = 2;

bool IsExecuting(const Layout& layout, std::span<const std::byte> bytes) {
  const auto state = Load<int8_t>(bytes, layout.frame.executing);
  if (layout.version < kPython310) return state != 0;
  return state == kExecuting || state == kUnwinding;
}

// Of a frame that has called another, or is the first of its chain.
bool WasLeft(const Layout& layout, std::span<const std::byte> bytes, bool is_first) {
  if (layout.frame.executing == kAbsent) return false;
  if (is_first && Load<Address>(bytes, layout.frame.generator) != 0) return true;
  return !IsExecuting(layout, bytes);
}

// With which frame a run of the evaluation loop begins: a flag of the Python frame in 3.11, a frame
// on the C stack in 3.12.
bool BeginsLoop(const Layout& layout, const RawFrame& frame) {
  return layout.version < kPython312 ? frame.is_entry : frame.owner >= kFirstInterpreterOwner;
}

WalkStatus StatusAtEnd(const Layout& layout, bool any, uint8_t last_owner) {
  // An empty chain is a thread without Python frames: just started, or about to end.
  if (!any || layout.frame_style == FrameStyle::kFrameObjects) return WalkStatus::kComplete;
  bool whole = layout.version < kPython312 ? last_owner != kOwnedByGenerator
                                           : last_owner >= kFirstInterpreterOwner;
  return whole ? WalkStatus::kComplete : WalkStatus::kIncomplete;
}

}  // namespace

WalkResult Walk(const StackCopy& copy, const Layout& layout, Address first,
                std::vector<RawFrame>& frames, std::vector<Address>& loop_frames) {
  frames.clear();
  loop_frames.clear();
  WalkResult walk{.status = WalkStatus::kMissing, .missing = first};
  ResumeWalk(copy, layout, frames, loop_frames, walk);
  return walk;
}

void ResumeWalk(const StackCopy& copy, const Layout& layout, std::vector<RawFrame>& frames,
                std::vector<Address>& loop_frames, WalkResult& walk) {
  const bool has_owner = layout.frame_style == FrameStyle::kInterpreterFrames;
  const Address start = std::exchange(walk.missing, 0);
  walk.status = WalkStatus::kBroken;
  // Frames do not overlap, so a chain with more of them than the copy has room for is a cycle.
  const size_t most = copy.byte_count() / layout.frame.size;
  for (Address address = start; address != 0;) {
    if (frames.size() + loop_frames.size() > most) return;
    const std::byte* found = copy.Find(address, layout.frame.size);
    if (found == nullptr) {
      walk.status = WalkStatus::kMissing;
      walk.missing = address;
      return;
    }
    const std::span bytes(found, layout.frame.size);
    RawFrame frame = LoadFrame(layout, address, bytes);
    walk.last_owner = frame.owner;
    if (has_owner && frame.owner > kHighestOwner) return;
    if (!has_owner || IsPythonFrame(layout, frame.owner)) {
      if (frame.code == 0) return;
      frames.push_back(frame);
    } else {
      loop_frames.push_back(address);
      if (!frames.empty()) frames.back().is_entry = true;
    }
    address = Load<Address>(bytes, layout.frame.previous);
    const bool is_first = address == 0;
    if (frames.size() > 1 || is_first) walk.has_left_frame |= WasLeft(layout, bytes, is_first);
    if (has_owner && !walk.loop_caller && BeginsLoop(layout, frame)) walk.loop_caller = address;
  }
  const bool any = !frames.empty() || !loop_frames.empty();
  walk.status = StatusAtEnd(layout, any, walk.last_owner);
}

void TrimToExecuting(const StackCopy& copy, const Layout& layout, std::vector<RawFrame>& frames) {
  if (layout.frame.stacktop == kAbsent) return;
  size_t leaf = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (copy.ValueOr0<int32_t>(frames[i].frame + layout.frame.stacktop) == -1) leaf = i;
    if (frames[i].is_entry) break;
  }
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(leaf));
}

}  // namespace pystrobe::pyabi
