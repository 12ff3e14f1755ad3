// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/stack_limit.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

Result<void> Check(Format format, std::string_view what, uint64_t seen, uint64_t most) {
  if (seen <= most) return {};
  return FailWithHint(
      ErrorCode::kInvalidArgument,
      "Write -o NAME.html, which has each frame once, or a part: --thread, --since, --until.",
      "{} lists each stack by itself, and those of this recording come to {} {} in all, more than "
      "{}",
      FormatName(format), GroupDigits(seen), what, GroupDigits(most));
}

/// The most there is where it is more.
uint64_t AddUpTo(uint64_t a, uint64_t b) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

/// By StackId, what `of_frame` gives of its frames.
template <typename OfFrame>
std::vector<uint64_t> SumByStack(const Tables& tables, OfFrame of_frame) {
  // Parents come before children in the ids.
  std::vector<uint64_t> of_stack(tables.stack_count());
  for (uint32_t i = 1; i < of_stack.size(); ++i) {
    const StackNode& stack = tables.stack(StackId{i});
    of_stack[i] = AddUpTo(of_stack[ToIndex(stack.parent)], of_frame(tables.frame(stack.frame)));
  }
  return of_stack;
}

/// Of all stacks of the profile.
template <typename OfFrame>
uint64_t SumOver(const Profile& profile, OfFrame of_frame) {
  const std::vector<uint64_t> of_stack = SumByStack(profile.tables(), of_frame);
  uint64_t sum = 0;
  for (const ThreadProfile& thread : profile.threads) {
    for (const StackWeight& entry : thread.stacks) {
      sum = AddUpTo(sum, of_stack[ToIndex(entry.stack)]);
    }
  }
  return sum;
}

uint64_t FramesOfGpu(const RecordingSource& recording) {
  const std::vector<uint64_t> depths =
      SumByStack(recording.tables(), [](const Frame&) { return uint64_t{1}; });
  uint64_t frames = 0;
  const auto add = [&](StackId stack) { frames = AddUpTo(frames, depths[ToIndex(stack)]); };
  for (const GpuSum& sum : recording.gpu()->sums) add(sum.stack);
  for (const GpuIdle& idle : recording.gpu()->idles) {
    add(idle.from);
    add(idle.to);
  }
  for (const GpuWait& wait : recording.gpu()->waits) add(wait.stack);
  return frames;
}

}  // namespace

Result<void> CheckFramesListed(Format format, uint64_t frames) {
  return Check(format, "frames", frames, kMostFramesListed);
}

Result<void> CheckStacksListed(Format format, const Profile& profile) {
  const uint64_t frames = SumOver(profile, [](const Frame&) { return uint64_t{1}; });
  if (auto done = CheckFramesListed(format, frames); !done) return done;
  if (format == Format::kJson && profile.recording->gpu() != nullptr) {
    return CheckFramesListed(format, FramesOfGpu(*profile.recording));
  }
  if (format != Format::kCollapsed) return {};
  const Tables& tables = profile.tables();
  const uint64_t bytes = SumOver(profile, [&tables](const Frame& frame) {
    const Function& function = tables.function(frame.function);
    return uint64_t{tables.text(function.name).size()} + tables.text(function.file).size();
  });
  return Check(format, "bytes", bytes, kMostBytesListed);
}

}  // namespace pystrobe::write
