// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/walk.h"

#include <utility>

#include "sampler/pyabi/walk_over.h"

namespace pystrobe::pyabi {

WalkResult Walk(const StackCopy& copy, const Layout& layout, Address first,
                std::vector<RawFrame>& frames, std::vector<Address>& loop_frames) {
  return WalkOver(copy, layout, first, frames, loop_frames);
}

void ResumeWalk(const StackCopy& copy, const Layout& layout, std::vector<RawFrame>& frames,
                std::vector<Address>& loop_frames, WalkResult& walk) {
  ResumeWalkOver(copy, layout, frames, loop_frames, walk);
}

void TrimToExecuting(WalkResult& walk, std::vector<RawFrame>& frames) {
  const size_t above = std::exchange(walk.executing, 0);
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(above));
}

}  // namespace pystrobe::pyabi
