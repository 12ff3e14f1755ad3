// SPDX-License-Identifier: Apache-2.0
//
// Layouts of targets that lie.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "golden.h"
#include "sampler/pyabi/layout.h"

namespace pystrobe::pyabi {

/// What LayoutFromDebugOffsets makes of the offsets of a release with some changed, mostly to what
/// could be sizes and offsets; nullopt when it refuses them.
inline std::optional<Layout> RandomLayout(std::mt19937_64& random) {
  static const std::vector<std::vector<std::byte>> golden = [] {
    std::vector<std::vector<std::byte>> all;
    for (const char* name : kGoldenDebugOffsets) all.push_back(GoldenDebugOffsets(name));
    return all;
  }();
  constexpr size_t kHeader = 24;
  std::vector<std::byte> bytes = golden[random() % golden.size()];
  for (uint64_t change = random() % 8 + 1; change > 0; --change) {
    const uint64_t choices[] = {random() % 32 * 8, random() % 8192 * 8, uint64_t{64} << 10,
                                random() >> random() % 64};
    const uint64_t value = choices[random() % 4];
    std::memcpy(&bytes[kHeader + random() % ((bytes.size() - kHeader) / 8) * 8], &value, 8);
  }
  auto layout = LayoutFromDebugOffsets(bytes);
  return layout ? std::optional(*layout) : std::nullopt;
}

}  // namespace pystrobe::pyabi
