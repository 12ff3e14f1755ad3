// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/call_graph.h"

namespace pystrobe {

std::vector<CalledFunction> BuildCallGraph(const Profile& profile) {
  const CallTree tree = BuildCallTree(profile.tables(), profile.threads, Mode::kWall);
  const std::vector<CallTree::Node>& nodes = tree.nodes;
  CallRows<FunctionId, CallSums> rows;
  const auto enter = [&](const CallTree::Node& node) {
    const auto caller =
        node.parent == 0 ? std::nullopt : std::optional(nodes[node.parent].function);
    rows.Enter(node.function, caller, [&node](CallSums& sums, bool is_recursive) {
      sums.self += node.self;
      if (is_recursive) {
        sums.recursive += node.self.samples;
      } else {
        sums.total += node.total;
      }
    });
  };
  // Depth first and without recursion: a tree may be deeper than our stack.
  std::vector<uint32_t> next_child(nodes.size(), 0);
  uint32_t node = 0;
  while (true) {
    if (next_child[node] < nodes[node].children.size()) {
      node = nodes[node].children[next_child[node]++];
      enter(nodes[node]);
    } else if (node != 0) {
      rows.Leave();
      node = nodes[node].parent;
    } else {
      return rows.Take();
    }
  }
}

}  // namespace pystrobe
