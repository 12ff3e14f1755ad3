// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_table.h"

#include <algorithm>

namespace pystrobe::trace {
namespace {

class Adder {
 public:
  void Add(const CallTree& tree) {
    const CallNode* node = First(tree.root());
    while (node != nullptr) node = Next(*node);
  }

  std::vector<CalledFunction> Take() {
    std::vector<CalledFunction> rows = rows_.Take();
    std::ranges::stable_sort(rows, std::ranges::greater{},
                             [](const CalledFunction& row) { return row.sums.self; });
    return rows;
  }

 private:
  const CallNode* First(const CallNode& root) {
    return root.first_child == nullptr ? nullptr : Enter(*root.first_child);
  }

  const CallNode* Enter(const CallNode& node) {
    const Key parent = node.parent->key;
    rows_.Enter(node.key, parent == nullptr ? std::nullopt : std::optional(parent),
                [&node](CallSums& sums, bool is_recursive) { AddTo(sums, node, is_recursive); });
    return &node;
  }

  const CallNode* Next(const CallNode& from) {
    if (from.first_child != nullptr) return Enter(*from.first_child);
    for (const CallNode* node = &from; node->parent != nullptr; node = node->parent) {
      rows_.Leave();
      if (node->next_sibling != nullptr) return Enter(*node->next_sibling);
    }
    return nullptr;
  }

  static void AddTo(CallSums& sums, const CallNode& node, bool is_recursive) {
    sums.calls += node.calls;
    sums.running += node.running;
    sums.self += node.self();
    sums.self_cpu += node.self_cpu();
    sums.finished += node.finished;
    sums.lifetime += node.lifetime;
    if (is_recursive) {
      sums.recursive_calls += node.calls;
    } else {
      sums.total += node.total;
      sums.total_cpu += node.cpu();
    }
  }

  CallRows<Key, CallSums> rows_;
};

}  // namespace

std::vector<CalledFunction> CallTable(std::span<const CallTree* const> trees) {
  Adder adder;
  for (const CallTree* tree : trees) adder.Add(*tree);
  return adder.Take();
}

}  // namespace pystrobe::trace
