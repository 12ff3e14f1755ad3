// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_tree.h"

#include <algorithm>

namespace pystrobe::trace {
namespace {

// So many children are looked through one by one, which is quicker than a hash.
constexpr uint32_t kNear = 8;

Ticks WithoutChildren(const CallNode& node, Ticks all, Ticks (*of_child)(const CallNode&)) {
  for (const CallNode* child = node.first_child; child != nullptr; child = child->next_sibling) {
    all -= std::min(all, of_child(*child));
  }
  return all;
}

// What the children have together is to fit in `cpu`.
void ShareCpu(const CallNode& parent, Ticks cpu) {
  Ticks claimed = 0;
  for (CallNode* child = parent.first_child; child != nullptr; child = child->next_sibling) {
    claimed += child->cpu();
  }
  if (claimed <= cpu) return;
  for (CallNode* child = parent.first_child; child != nullptr; child = child->next_sibling) {
    const auto share = static_cast<unsigned __int128>(child->cpu()) * cpu / claimed;
    child->off_cpu = child->total - static_cast<Ticks>(share);
  }
}

}  // namespace

Ticks CallNode::self() const {
  return WithoutChildren(*this, total, [](const CallNode& child) { return child.total; });
}

Ticks CallNode::self_cpu() const {
  return WithoutChildren(*this, cpu(), [](const CallNode& child) { return child.cpu(); });
}

size_t CallTree::EdgeHash::operator()(const Edge& edge) const {
  return PairHash()(reinterpret_cast<uint64_t>(edge.parent) ^
                    (reinterpret_cast<uint64_t>(edge.key) << 17));
}

CallNode* CallTree::Find(const CallNode& parent, Key key) const {
  if (parent.child_count > kNear) {
    const auto found = far_.find(Edge{&parent, key});
    return found == far_.end() ? nullptr : found->second;
  }
  CallNode* child = parent.first_child;
  while (child != nullptr && child->key != key) child = child->next_sibling;
  return child;
}

CallNode& CallTree::Make(CallNode& parent, Key key) {
  if (room_ != nullptr) room_->Take();
  const auto number = static_cast<uint32_t>(nodes_.size());
  CallNode& node = nodes_.emplace_back();
  node.number = number;
  node.key = key;
  node.parent = &parent;
  node.next_sibling = parent.first_child;
  parent.first_child = &node;
  ++parent.child_count;
  if (parent.child_count == kNear + 1) {
    for (CallNode* child = &node; child != nullptr; child = child->next_sibling) {
      far_.emplace(Edge{&parent, child->key}, child);
    }
  } else if (parent.child_count > kNear) {
    far_.emplace(Edge{&parent, key}, &node);
  }
  return node;
}

// Parents come first: what a dropped one has below it goes with it.
void CallTree::Drop(FunctionRef<bool(const CallNode&)> is_unwanted) {
  for (CallNode& node : nodes_) {
    if (node.parent == nullptr || node.key == nullptr) continue;
    const bool goes_along = node.parent->parent != nullptr && node.parent->key == nullptr;
    if (!goes_along && !is_unwanted(node)) continue;
    CallNode** link = &node.parent->first_child;
    while (*link != &node) link = &(*link)->next_sibling;
    *link = node.next_sibling;
    node.key = nullptr;
  }
}

void CallTree::SettleCpu(Ticks cpu) {
  ShareCpu(root(), cpu);
  for (const CallNode& node : nodes_) {
    if (node.parent != nullptr) ShareCpu(node, node.cpu());
  }
}

}  // namespace pystrobe::trace
