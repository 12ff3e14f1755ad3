// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/merged_stack.h"

#include <utility>

#include "sampler/remote/region_frames.h"

namespace pystrobe::remote {
namespace {

using native::MergedFrame;

// A program that runs for ever comes to more than are of use at a time.
constexpr size_t kMostKnown = 100'000;

}  // namespace

std::vector<NamedFrame> NameFrames(CodeCache& codes, const pyabi::Layout& layout,
                                   std::span<const pyabi::RawFrame> frames, Nanoseconds now) {
  const bool each_begins = layout.frame_style != pyabi::FrameStyle::kInterpreterFrames;
  std::vector<NamedFrame> named;
  named.reserve(frames.size());
  for (const pyabi::RawFrame& frame : frames) {
    named.push_back({codes.Resolve(frame, now), each_begins || frame.is_entry, frame.region});
  }
  return named;
}

StackMerger::Merged StackMerger::Merge(StackId base, std::span<const NamedFrame> frames,
                                       std::span<const native::Address> instructions,
                                       bool is_whole) {
  kinds_.clear();
  for (const native::Address instruction : instructions) {
    kinds_.push_back(native_.Of(instruction).kind);
  }
  begins_run_.clear();
  for (const NamedFrame& frame : frames) begins_run_.push_back(frame.begins_run ? 1 : 0);
  Merged merged{.stack = base};
  merged.result = native::Merge(kinds_, is_whole, begins_run_, merged_);
  for (size_t i = merged_.size(); i-- > 0;) {
    const MergedFrame& frame = merged_[i];
    if (frame.is_native) {
      merged.stack = PushNative(merged.stack, instructions[frame.index]);
    } else if (const auto id = frames[frame.index].frame) {
      merged.stack = PushRegions(tables_, merged.stack, frames[frame.index].region);
      merged.stack = tables_.Push(merged.stack, *id);
    }
  }
  return merged;
}

StackId StackMerger::PushNative(StackId stack, native::Address instruction) {
  auto known = frames_of_.find(instruction);
  if (known == frames_of_.end()) {
    if (frames_of_.size() >= kMostKnown) frames_of_.clear();
    known = frames_of_.insert_or_assign(instruction, FramesOf(instruction)).first;
  }
  const std::vector<FrameId>& frames = known->second;
  for (size_t i = frames.size(); i-- > 0;) stack = tables_.Push(stack, frames[i]);
  return stack;
}

std::vector<FrameId> StackMerger::FramesOf(native::Address instruction) {
  const native::NativePlace& place = native_.Of(instruction).place;
  std::vector<FrameId> frames;
  const auto add = [&](std::string_view name, std::string_view file, uint32_t line) {
    const FunctionId function =
        tables_.Intern(Function{tables_.Intern(name), tables_.Intern(file), 0, true});
    frames.push_back(tables_.Intern(Frame{function, line}));
  };
  for (const native::NativeFunction& function : place.functions) {
    const std::string name =
        function.name.empty() ? native::NameOfUnknown(place, instruction) : function.name;
    add(name, function.file.empty() ? place.binary : function.file, function.line);
  }
  if (frames.empty()) add(native::NameOfUnknown(place, instruction), place.binary, 0);
  return frames;
}

}  // namespace pystrobe::remote
