// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/known_rules.h"

#include <utility>

namespace pystrobe::signals {

const native::UnwindRule* KnownRules::Find(native::Address pc) const {
  const Sorted& ranges = *current_.load();
  // The first that ends behind it.
  size_t low = 0;
  size_t high = ranges.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ranges[middle].end <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == ranges.size() || !ranges[low].Contains(pc)) return nullptr;
  return &ranges[low].rule;
}

void KnownRules::Publish(const Ranges& ranges) {
  auto fresh = std::make_unique<Sorted>();
  fresh->reserve(ranges.size());
  for (const auto& [end, range] : ranges) fresh->push_back(range);
  current_.store(fresh.get());
  old_.push_back(std::exchange(newest_, std::move(fresh)));
}

}  // namespace pystrobe::signals
