// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_table.h"

#include <algorithm>

namespace pystrobe::trace {
namespace {

class Adder {
 public:
  void Add(const CallTree& tree) {
    // Depth first, with the way to the root at hand: who is on it is called recursively.
    for (const CallNode* node = First(tree.root()); node != nullptr; node = Next(*node)) continue;
  }

  std::vector<CallRow> Take() {
    std::ranges::stable_sort(rows_, std::ranges::greater{},
                             [](const CallRow& row) { return row.sums.self; });
    return std::move(rows_);
  }

 private:
  const CallNode* First(const CallNode& root) {
    return root.first_child == nullptr ? nullptr : Enter(*root.first_child);
  }

  const CallNode* Enter(const CallNode& node) {
    const size_t row = RowOf(node.key);
    const size_t caller = CallerOf(row, node.parent->key);
    AddTo(rows_[row].sums, node, open_[row]++ > 0);
    const uint64_t edge = row << 32 | caller;
    AddTo(rows_[row].callers[caller].sums, node, open_edges_[edge]++ > 0);
    path_.push_back({row, edge});
    return &node;
  }

  const CallNode* Next(const CallNode& from) {
    if (from.first_child != nullptr) return Enter(*from.first_child);
    for (const CallNode* node = &from; node->parent != nullptr; node = node->parent) {
      --open_[path_.back().row];
      --open_edges_[path_.back().edge];
      path_.pop_back();
      if (node->next_sibling != nullptr) return Enter(*node->next_sibling);
    }
    return nullptr;
  }

  static void AddTo(CallSums& sums, const CallNode& node, bool is_recursive) {
    sums.calls += node.calls;
    sums.running += node.running;
    sums.self += node.self();
    sums.self_cpu += node.self_cpu();
    if (is_recursive) {
      sums.recursive_calls += node.calls;
    } else {
      sums.total += node.total;
      sums.total_cpu += node.cpu();
    }
  }

  size_t RowOf(Key key) {
    const auto [found, is_new] = row_of_.emplace(key, rows_.size());
    if (is_new) {
      rows_.push_back({.key = key});
      open_.push_back(0);
    }
    return found->second;
  }

  size_t CallerOf(size_t row, Key caller) {
    std::vector<CallRow::Caller>& callers = rows_[row].callers;
    const auto found = std::ranges::find(callers, caller, &CallRow::Caller::key);
    if (found == callers.end()) {
      callers.push_back({.key = caller});
      return callers.size() - 1;
    }
    return static_cast<size_t>(found - callers.begin());
  }

  struct Step {
    size_t row;
    uint64_t edge;
  };
  std::vector<CallRow> rows_;
  HashMap<Key, size_t> row_of_;
  std::vector<uint32_t> open_;  // by row: nodes on the way to the root
  HashMap<uint64_t, uint32_t, PairHash> open_edges_;
  std::vector<Step> path_;
};

}  // namespace

std::vector<CallRow> CallTable(std::span<const CallTree* const> trees) {
  Adder adder;
  for (const CallTree* tree : trees) adder.Add(*tree);
  return adder.Take();
}

}  // namespace pystrobe::trace
