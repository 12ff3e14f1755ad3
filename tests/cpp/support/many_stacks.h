// SPDX-License-Identifier: Apache-2.0
//
// Definitions that take a few hundred bytes of a file, and much of who reads it.
#pragma once

#include "profiler/store/block.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::testing {

/// A million stacks, one upon the other.
inline store::Columns ManyStacks() {
  using namespace store;
  Columns columns;
  columns[kStringLengths] = {1};
  columns[kStringBytes] = {'f'};
  columns[kFunctions] = {2, 0, 0};
  columns[kFrames] = {0, 2};
  columns[kParentLevels].assign(1'000'000, 0);
  columns[kCalleeRanks].assign(1'000'000, 0);
  columns[kCalleeRanks][0] = kFar;
  columns[kCalleeRanks][1] = kFar;
  columns[kCalleeNew] = {0, 0};
  return columns;
}

}  // namespace pystrobe::testing
