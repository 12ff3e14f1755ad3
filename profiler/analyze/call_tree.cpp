// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "profiler/analyze/profile.h"
#include "profiler/analyze/stack_sums.h"
#include "profiler/analyze/text_order.h"
#include "profiler/base/hash.h"

namespace pystrobe {
namespace {

struct LineAtNode {
  uint32_t node;
  uint32_t line;
  Weights self;
};

/// Gives each stack that carries time, or leads to one that does, its node.
class TreeBuilder {
 public:
  explicit TreeBuilder(const Tables& tables) : tables_(tables), order_(tables) {
    nodes_.emplace_back();
  }

  void AddStacks(const std::vector<Weights>& self, const std::vector<Weights>& total) {
    std::vector<uint32_t> node_of_stack(self.size(), 0);
    nodes_[0].self = self[0];
    // Parents come before children in the ids, hence also in the nodes.
    for (uint32_t i = 1; i < self.size(); ++i) {
      if (analyze::IsZero(total[i])) continue;
      const StackNode& stack = tables_.stack(StackId{i});
      const Frame& frame = tables_.frame(stack.frame);
      const uint32_t node = ChildOf(node_of_stack[ToIndex(stack.parent)], frame.function);
      node_of_stack[i] = node;
      nodes_[node].self += self[i];
      lines_.push_back({node, frame.line, self[i]});
    }
  }

  CallTree Finish(Mode mode) {
    for (size_t i = nodes_.size(); i-- > 0;) {
      nodes_[i].total += nodes_[i].self;
      if (i > 0) nodes_[nodes_[i].parent].total += nodes_[i].total;
    }
    for (CallTree::Node& node : nodes_) SortChildren(node, mode);
    MergeLines();
    return {std::move(nodes_)};
  }

 private:
  uint32_t ChildOf(uint32_t parent, FunctionId function) {
    const uint64_t key = uint64_t{parent} << 32 | ToIndex(function);
    const auto [it, added] = child_.try_emplace(key, static_cast<uint32_t>(nodes_.size()));
    if (added) {
      nodes_[parent].children.push_back(it->second);
      CallTree::Node& node = nodes_.emplace_back();
      node.function = function;
      node.parent = parent;
    }
    return it->second;
  }

  void SortChildren(CallTree::Node& node, Mode mode) const {
    std::sort(node.children.begin(), node.children.end(), [&](uint32_t a, uint32_t b) {
      const uint64_t time_a = nodes_[a].total.nanoseconds(mode);
      const uint64_t time_b = nodes_[b].total.nanoseconds(mode);
      if (time_a != time_b) return time_a > time_b;
      return order_.IsBefore(nodes_[a].function, nodes_[b].function);
    });
  }

  void MergeLines() {
    std::sort(lines_.begin(), lines_.end(), [](const LineAtNode& a, const LineAtNode& b) {
      return std::pair(a.node, a.line) < std::pair(b.node, b.line);
    });
    for (const LineAtNode& entry : lines_) {
      std::vector<CallTree::Line>& lines = nodes_[entry.node].lines;
      if (lines.empty() || lines.back().line != entry.line) lines.push_back({entry.line, {}});
      lines.back().self += entry.self;
    }
  }

  const Tables& tables_;
  analyze::TextOrder order_;
  std::vector<CallTree::Node> nodes_;
  std::vector<LineAtNode> lines_;
  HashMap<uint64_t, uint32_t, PairHash> child_;  // parent node << 32 | function
};

}  // namespace

CallTree BuildCallTree(const Tables& tables, std::span<const ThreadProfile> threads, Mode mode) {
  const std::vector<Weights> self = analyze::SelfByStack(tables, threads);
  std::vector<Weights> total = self;
  analyze::AddChildrenToParents(tables, total);
  TreeBuilder builder(tables);
  builder.AddStacks(self, total);
  return builder.Finish(mode);
}

}  // namespace pystrobe
