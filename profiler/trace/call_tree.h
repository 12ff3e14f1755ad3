// SPDX-License-Identifier: Apache-2.0
//
// Who called whom, how often and for how long: the calling context tree of one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "profiler/base/function_ref.h"
#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"
#include "profiler/trace/tick_clock.h"

namespace pystrobe::trace {

/// What is called, by its identity: a code object, or what the hooks make of a function of C. The
/// tree never looks at what it points to.
using Key = const void*;

/// A function as called from `parent`, which was called from its own parent, and so on.
struct CallNode {
  Key key = nullptr;               ///< nullptr: of the root
  CallNode* last_child = nullptr;  ///< the one that was entered last
  CallNode* follower = this;       ///< what other child its parent entered after it, the last time
  CallNode* parent = nullptr;
  uint64_t calls = 0;
  Ticks total = 0;    ///< between entering and leaving, what it called included
  Ticks off_cpu = 0;  ///< of `total`: the thread had no CPU

  CallNode* first_child = nullptr;
  CallNode* next_sibling = nullptr;
  uint32_t child_count = 0;
  uint32_t number = 0;    ///< its place among the tree's nodes
  uint32_t running = 0;   ///< calls that had begun before the tracing did; not in `calls`
  uint64_t left_out = 0;  ///< calls below it that were too deep: their time is its own
  uint64_t finished = 0;  ///< of `calls`, where they are a coroutine's: those that have ended
  Ticks lifetime = 0;     ///< of these, from the beginning to the end, what they waited included

  /// Of `total` and of its CPU time, what no child has.
  Ticks self() const;
  Ticks cpu() const { return total - off_cpu; }
  Ticks self_cpu() const;
};

/// How many nodes some trees may have together. A program may go any number of ways, and each is
/// told of for as long as the trees live. [any thread]
class NodeRoom {
 public:
  explicit NodeRoom(size_t most) : left_(static_cast<int64_t>(most)) {}
  bool IsEmpty() const { return left_.load(std::memory_order_relaxed) <= 0; }
  void Take() { left_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

/// Nodes stay where they are, as long as the tree lives. [one thread]
class CallTree {
 public:
  /// `room`: outlives it; nullptr: as much as there is memory.
  explicit CallTree(NodeRoom* room = nullptr) : room_(room) { nodes_.emplace_back(); }
  CallTree(const CallTree&) = delete;
  CallTree& operator=(const CallTree&) = delete;

  CallNode& root() { return nodes_.front(); }
  const CallNode& root() const { return nodes_.front(); }

  /// The child of that key where it is the one that was entered last, or that was entered after
  /// that one the last time, as in a loop: two compares. It is the one that was entered last then.
  /// nullptr: it is another, or there is none.
  static CallNode* ChildAgain(CallNode& parent, Key key) {
    CallNode* child = parent.last_child;
    if (child == nullptr) return nullptr;
    if (child->key == key) [[likely]]
      return child;
    child = child->follower;
    if (child->key != key) return nullptr;
    parent.last_child = child;
    return child;
  }
  /// Where there is none, `admits` is asked with the key whether to make one; if not: nullptr.
  template <typename Admits>
  CallNode* ChildOf(CallNode& parent, Key key, const Admits& admits) {
    if (CallNode* const child = ChildAgain(parent, key)) return child;
    CallNode* child = Find(parent, key);
    if (child == nullptr) {
      if (!admits(key)) return nullptr;
      child = &Make(parent, key);
    }
    if (parent.last_child != nullptr) parent.last_child->follower = child;
    parent.last_child = child;
    return child;
  }
  /// Whether there is to be no further node.
  bool IsFull() const { return room_ != nullptr && room_->IsEmpty(); }

  /// Forgets the nodes that `is_unwanted`, with all below them: their time becomes their caller's
  /// own.
  void Drop(FunctionRef<bool(const CallNode&)> is_unwanted);

  /// That a thread had no CPU may be found out after the call in which it had none (OffCpu): those
  /// around both have the right CPU time, and those below them too much of it. What is too much is
  /// taken off each in proportion, so that no calls have more than what they were called by; those
  /// at the bottom together have `cpu` at most.
  void SettleCpu(Ticks cpu);

  /// Parents before their children. Those that were dropped have no key.
  const std::deque<CallNode>& nodes() const { return nodes_; }

 private:
  CallNode* Find(const CallNode& parent, Key key) const;
  CallNode& Make(CallNode& parent, Key key);

  struct Edge {
    const CallNode* parent;
    Key key;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  struct EdgeHash {
    size_t operator()(const Edge& edge) const;
  };

  NodeRoom* const room_;
  std::deque<CallNode> nodes_;
  HashMap<Edge, CallNode*, EdgeHash> far_;  // the children of those that have many
};

}  // namespace pystrobe::trace
