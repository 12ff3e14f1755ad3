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

/// Of all stacks of the profile, what `of_frame` gives of their frames; the most there is where it
/// is more.
template <typename OfFrame>
uint64_t SumOver(const Profile& profile, OfFrame of_frame) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const auto add = [](uint64_t a, uint64_t b) { return a > kMost - b ? kMost : a + b; };
  const Tables& tables = profile.tables();
  // Parents come before children in the ids.
  std::vector<uint64_t> of_stack(tables.stack_count());
  for (uint32_t i = 1; i < of_stack.size(); ++i) {
    const StackNode& stack = tables.stack(StackId{i});
    of_stack[i] = add(of_stack[ToIndex(stack.parent)], of_frame(tables.frame(stack.frame)));
  }
  uint64_t sum = 0;
  for (const ThreadProfile& thread : profile.threads) {
    for (const StackWeight& entry : thread.stacks) sum = add(sum, of_stack[ToIndex(entry.stack)]);
  }
  return sum;
}

}  // namespace

Result<void> CheckFramesListed(Format format, uint64_t frames) {
  return Check(format, "frames", frames, kMostFramesListed);
}

Result<void> CheckStacksListed(Format format, const Profile& profile) {
  const uint64_t frames = SumOver(profile, [](const Frame&) { return uint64_t{1}; });
  if (auto done = CheckFramesListed(format, frames); !done) return done;
  if (format != Format::kCollapsed) return {};
  const Tables& tables = profile.tables();
  const uint64_t bytes = SumOver(profile, [&tables](const Frame& frame) {
    const Function& function = tables.function(frame.function);
    return uint64_t{tables.text(function.name).size()} + tables.text(function.file).size();
  });
  return Check(format, "bytes", bytes, kMostBytesListed);
}

}  // namespace pystrobe::write
