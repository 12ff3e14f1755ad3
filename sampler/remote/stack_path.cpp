// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stack_path.h"

#include <algorithm>
#include <utility>

#include "sampler/remote/region_frames.h"

namespace pystrobe::remote {
namespace {

// How often the codes of a stack that stays are seen in use, so that the cache does not forget
// them.
constexpr Nanoseconds kSettledFor = std::chrono::seconds(1);

}  // namespace

size_t StackPath::CountCommon(const std::vector<pyabi::RawFrame>& fresh, Nanoseconds now) {
  const size_t most = std::min(fresh.size(), frames_.size());
  if (settled_epoch_ != codes_.epoch() || now >= settled_until_) {
    settled_ = 0;
    settled_until_ = now + kSettledFor;
  }
  settled_epoch_ = codes_.epoch();
  size_t common = 0;
  while (common < most) {
    const pyabi::RawFrame& frame = fresh[fresh.size() - 1 - common];
    if (frame != frames_[frames_.size() - 1 - common]) break;
    if (common >= settled_ && !codes_.IsSettled(frame.code)) break;
    ++common;
  }
  settled_ = common;
  return common;
}

bool StackPath::Take(const std::vector<pyabi::RawFrame>& fresh, size_t common, bool complete,
                     Nanoseconds now) {
  // Where the copy does not reach the thread's first frame, what it holds is no root.
  const StackId base = complete ? kEmptyStack : codes_.incomplete_stack();
  if (base != std::exchange(base_, base)) common = 0;
  path_.resize(common);
  StackId stack = common == 0 ? base : path_.back();
  const uint64_t unnamed = codes_.unnamed();
  for (size_t i = fresh.size() - common; i-- > 0;) {
    if (const auto frame = codes_.Resolve(fresh[i], now)) {
      stack = tables_.Push(PushRegions(tables_, stack, fresh[i].region), *frame);
    }
    path_.push_back(stack);
  }
  frames_ = fresh;
  return codes_.unnamed() == unnamed;
}

std::vector<pyabi::RawFrame> StackPath::ShownFrames() const {
  std::vector<pyabi::RawFrame> shown;
  StackId below = base_;
  for (size_t i = 0; i < path_.size(); ++i) {
    if (path_[i] != below) shown.push_back(frames_[frames_.size() - 1 - i]);
    below = path_[i];
  }
  std::ranges::reverse(shown);
  return shown;
}

}  // namespace pystrobe::remote
