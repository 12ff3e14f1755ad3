// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/merged_stack.h"

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

std::vector<uint8_t> RunBeginnings(std::span<const NamedFrame> frames) {
  std::vector<uint8_t> begins;
  begins.reserve(frames.size());
  for (const NamedFrame& frame : frames) begins.push_back(frame.begins_run ? 1 : 0);
  return begins;
}

native::MergeResult CodeMerger::Merge(std::span<const native::Address> instructions, bool is_whole,
                                      std::span<const uint8_t> begins_run,
                                      native::RunHistory& history,
                                      std::vector<MergedFrame>& merged) {
  kinds_.clear();
  for (const native::Address instruction : instructions) {
    kinds_.push_back(native_.Of(instruction).kind);
  }
  return native::Merge(kinds_, is_whole, begins_run, history, merged);
}

void NativeFrameIds::Set(native::Address instruction, const native::NativePlace& place) {
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
  frames_of_.insert_or_assign(instruction, std::move(frames));
}

StackId NativeFrameIds::Push(StackId stack, native::Address instruction) const {
  const std::vector<FrameId>& frames = frames_of_.find(instruction)->second;
  for (size_t i = frames.size(); i-- > 0;) stack = tables_.Push(stack, frames[i]);
  return stack;
}

StackId PushMerged(Tables& tables, const NativeFrameIds& ids, StackId base,
                   std::span<const NamedFrame> frames,
                   std::span<const native::Address> instructions,
                   std::span<const MergedFrame> merged) {
  StackId stack = base;
  for (size_t i = merged.size(); i-- > 0;) {
    const MergedFrame& frame = merged[i];
    if (frame.is_native) {
      stack = ids.Push(stack, instructions[frame.index]);
    } else if (const auto id = frames[frame.index].frame) {
      stack = tables.Push(PushRegions(tables, stack, frames[frame.index].region), *id);
    }
  }
  return stack;
}

StackMerger::Merged StackMerger::Merge(StackId base, std::span<const NamedFrame> frames,
                                       std::span<const native::Address> instructions, bool is_whole,
                                       native::RunHistory& history) {
  Merged done;
  done.result = merger_.Merge(instructions, is_whole, RunBeginnings(frames), history, merged_);
  if (ids_.size() >= kMostKnown) ids_.Clear();
  for (const MergedFrame& frame : merged_) {
    if (!frame.is_native || ids_.Has(instructions[frame.index])) continue;
    ids_.Set(instructions[frame.index], native_.Of(instructions[frame.index]).place);
  }
  done.stack = PushMerged(tables_, ids_, base, frames, instructions, merged_);
  return done;
}

}  // namespace pystrobe::remote
