// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/stack_sums.h"

namespace pystrobe::analyze {

std::vector<Weights> SelfByStack(const Tables& tables, std::span<const ThreadProfile> threads) {
  std::vector<Weights> by_stack(tables.stack_count());
  for (const ThreadProfile& thread : threads) {
    for (const StackWeight& stack : thread.stacks) by_stack[ToIndex(stack.stack)] += stack.self;
  }
  return by_stack;
}

void AddChildrenToParents(const Tables& tables, std::vector<Weights>& by_stack) {
  for (uint32_t i = static_cast<uint32_t>(by_stack.size()); i-- > 1;) {
    by_stack[ToIndex(tables.stack(StackId{i}).parent)] += by_stack[i];
  }
}

}  // namespace pystrobe::analyze
