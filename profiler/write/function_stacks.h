// SPDX-License-Identifier: Apache-2.0
//
// The stack tree of a recording with the lines taken out of it. [any thread once built]
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/model/tables.h"

namespace pystrobe::write {

/// Numbers the distinct stacks of functions: 0 is the empty one, a parent comes before its
/// children.
class FunctionStacks {
 public:
  explicit FunctionStacks(const Tables& tables);

  /// The stack of functions that a stack of frames is.
  uint32_t Of(StackId stack) const { return of_stack_[ToIndex(stack)]; }
  /// Its functions, root first. Valid until the next call. [one thread at a time]
  const std::vector<FunctionId>& FunctionsOf(uint32_t stack);
  /// The functions in those of the stacks that are marked (`marked` by stack), each once, in a
  /// stable order.
  std::vector<FunctionId> FunctionsIn(std::vector<bool> marked) const;

  /// How many functions those are.
  uint32_t DepthOf(uint32_t stack) const { return depths_[stack]; }

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    uint32_t parent = 0;
    FunctionId function{};
  };

  std::vector<Node> nodes_;
  std::vector<uint32_t> depths_;    // of nodes_
  std::vector<uint32_t> of_stack_;  // by StackId
  std::vector<FunctionId> functions_;
  size_t function_count_;
};

}  // namespace pystrobe::write
