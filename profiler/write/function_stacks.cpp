// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/function_stacks.h"

#include <algorithm>

#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"

namespace pystrobe::write {

FunctionStacks::FunctionStacks(const Tables& tables)
    : nodes_(1),
      depths_(1),
      of_stack_(tables.stack_count()),
      function_count_(tables.function_count()) {
  HashMap<uint64_t, uint32_t, PairHash> ids;
  for (uint32_t i = 1; i < tables.stack_count(); ++i) {
    const StackNode& stack = tables.stack(StackId{i});
    const Node node{of_stack_[ToIndex(stack.parent)], tables.frame(stack.frame).function};
    const uint64_t key = uint64_t{node.parent} << 32 | ToIndex(node.function);
    const auto [it, added] = ids.try_emplace(key, static_cast<uint32_t>(nodes_.size()));
    if (added) {
      nodes_.push_back(node);
      depths_.push_back(depths_[node.parent] + 1);
    }
    of_stack_[i] = it->second;
  }
}

const std::vector<FunctionId>& FunctionStacks::FunctionsOf(uint32_t stack) {
  functions_.clear();
  for (; stack != 0; stack = nodes_[stack].parent) functions_.push_back(nodes_[stack].function);
  std::ranges::reverse(functions_);
  return functions_;
}

std::vector<FunctionId> FunctionStacks::FunctionsIn(std::vector<bool> marked) const {
  for (size_t i = nodes_.size(); i-- > 1;) {
    if (marked[i]) marked[nodes_[i].parent] = true;
  }
  std::vector<FunctionId> functions;
  std::vector<bool> seen(function_count_);
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const FunctionId function = nodes_[i].function;
    if (!marked[i] || seen[ToIndex(function)]) continue;
    seen[ToIndex(function)] = true;
    functions.push_back(function);
  }
  return functions;
}

}  // namespace pystrobe::write
