// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/call_graph.h"

#include <algorithm>

#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"

namespace pystrobe {
namespace {

class GraphBuilder {
 public:
  explicit GraphBuilder(const CallTree& tree) : nodes_(tree.nodes) {}

  std::vector<CalledFunction> Build() {
    // Depth first and without recursion: a tree may be deeper than our stack.
    std::vector<uint32_t> next_child(nodes_.size(), 0);
    uint32_t node = 0;
    while (true) {
      if (next_child[node] < nodes_[node].children.size()) {
        node = nodes_[node].children[next_child[node]++];
        Enter(nodes_[node]);
      } else if (node != 0) {
        Leave();
        node = nodes_[node].parent;
      } else {
        return std::move(functions_);
      }
    }
  }

 private:
  void Enter(const CallTree::Node& node) {
    const size_t row = RowOf(node.function);
    const size_t caller = CallerOf(row, node.parent);
    const uint64_t edge = uint64_t{row} << 32 | caller;
    Add(functions_[row].sums, node, open_[row]++ > 0);
    Add(functions_[row].callers[caller].sums, node, open_edges_[edge]++ > 0);
    path_.push_back({row, edge});
  }

  void Leave() {
    --open_[path_.back().row];
    --open_edges_[path_.back().edge];
    path_.pop_back();
  }

  static void Add(CallSums& sums, const CallTree::Node& node, bool is_recursive) {
    sums.self += node.self;
    if (is_recursive) {
      sums.recursive += node.self.samples;
    } else {
      sums.total += node.total;
    }
  }

  size_t RowOf(FunctionId function) {
    const auto [found, is_new] = row_of_.emplace(ToIndex(function), functions_.size());
    if (is_new) {
      functions_.push_back({.function = function, .sums = {}, .callers = {}});
      open_.push_back(0);
    }
    return found->second;
  }

  size_t CallerOf(size_t row, uint32_t parent) {
    const auto caller = parent == 0 ? std::nullopt : std::optional(nodes_[parent].function);
    std::vector<CalledFunction::Caller>& callers = functions_[row].callers;
    const auto found = std::ranges::find(callers, caller, &CalledFunction::Caller::function);
    if (found != callers.end()) return static_cast<size_t>(found - callers.begin());
    callers.push_back({.function = caller, .sums = {}});
    return callers.size() - 1;
  }

  struct Step {
    size_t row;
    uint64_t edge;
  };
  const std::vector<CallTree::Node>& nodes_;
  std::vector<CalledFunction> functions_;
  HashMap<uint32_t, size_t> row_of_;
  std::vector<uint32_t> open_;  // by row: nodes on the way to the root
  HashMap<uint64_t, uint32_t, PairHash> open_edges_;
  std::vector<Step> path_;
};

}  // namespace

std::vector<CalledFunction> BuildCallGraph(const Profile& profile) {
  const CallTree tree = BuildCallTree(profile.tables(), profile.threads, Mode::kWall);
  return GraphBuilder(tree).Build();
}

}  // namespace pystrobe
