// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/stack_copy.h"

#include <algorithm>

namespace pystrobe::pyabi {

void StackCopy::Clear() {
  ranges_.clear();
  used_ = 0;
  hint_ = 0;
}

bool StackCopy::Add(Address address, uint32_t size) {
  const size_t padded = (size_t{size} + 7) & ~size_t{7};
  if (padded > kMostBytes - used_) return false;
  ranges_.push_back({address, size, static_cast<uint32_t>(used_)});
  used_ += padded;
  if (buffer_.size() < used_) buffer_.resize(std::min(used_ * 2, kMostBytes));
  hint_ = ranges_.size() - 1;
  return true;
}

void StackCopy::AppendRequests(size_t first_range, std::vector<ReadRequest>& requests) {
  for (size_t i = first_range; i < ranges_.size(); ++i) {
    const Range& range = ranges_[i];
    requests.push_back({range.address, buffer_.data() + range.offset, range.size});
  }
}

const std::byte* StackCopy::FindAnywhere(Address address, size_t size) const {
  for (size_t i = ranges_.size(); i-- > 0;) {
    if (const std::byte* found = FindIn(ranges_[i], address, size)) {
      hint_ = i;
      return found;
    }
  }
  return nullptr;
}

}  // namespace pystrobe::pyabi
