// SPDX-License-Identifier: Apache-2.0
//
// Which operation of PyTorch's a thread is at: going forward the last one that is to be gone back
// through, going back the one whose gradient is made. Both are known by the same number.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/hash_map.h"
#include "pyext/launch/node_number.h"

namespace pystrobe::launch {

/// Of the PyTorch in this process. Never destroyed: threads look at it that nobody waits for.
class TorchNodes {
 public:
  /// `views`: operations that give their argument back in another shape, as their nodes are called:
  /// "Select" of SelectBackward0. They launch nothing, so the first launch after the node was made
  /// is of something else. Null where PyTorch is not loaded, or is one that lacks what is asked
  /// for.
  static std::unique_ptr<const TorchNodes> Find(const std::vector<std::string>& views);

  /// NodeNumber::sequence of the node that the calling thread makes next. [any thread]
  uint64_t Next() const noexcept { return functions_.next(); }

  /// The node that the calling thread made last: it is made before the operation's first launch.
  /// Nullopt where none is made now, as under no_grad. [any thread]
  std::optional<NodeNumber> LastMade() const noexcept;

  /// Whether PyTorch has its nodes where they are looked for: `node` is one as Python has it,
  /// `sequence` what it says of itself. Nothing is read of nodes until one was right. Nodes of
  /// other threads, and those written in Python, prove nothing. [GIL held]
  bool Prove(PyObject* node, uint64_t sequence) const noexcept;

  /// The node whose gradient the calling thread makes. Nullopt of any other thread, of views, and
  /// of nodes whose operation may have launched something before there was a node. [any thread]
  std::optional<NodeNumber> Running() const noexcept;

 private:
  struct Node;
  /// at::sequence_number::peek, c10::GradMode::is_enabled, at::RecordFunction::currentThreadId and
  /// torch::autograd::get_current_node.
  struct Functions {
    uint64_t (*next)();
    bool (*makes)();
    uint64_t (*thread)();
    std::shared_ptr<Node> (*running)();
  };

  TorchNodes(Functions functions, const std::vector<std::string>& views);
  bool LaunchesFirst(std::string_view type) const noexcept;

  const Functions functions_;
  const std::vector<std::string> views_;
  HashSet<std::string_view> is_view_;  // of views_
  mutable std::atomic<bool> is_right_{false};
};

}  // namespace pystrobe::launch
