// SPDX-License-Identifier: Apache-2.0
#include "gpu/graph_nodes.h"

#include <new>

#include "gpu/gpu_work.h"

namespace pystrobe::gpu {

void GraphNodes::Create(uint32_t graph, uint64_t node, uint32_t path) noexcept {
  const std::lock_guard lock(mutex_);
  if (paths_.size() >= most_ && !MakeRoom()) return;
  try {
    nodes_[graph].push_back(node);
    paths_[node] = path;
  } catch (const std::bad_alloc&) {
    // Not noted: the same as no room.
  }
}

bool GraphNodes::MakeRoom() {
  while (!gone_.empty() && paths_.size() >= most_) {
    const auto graph = nodes_.find(gone_.front());
    gone_.pop_front();
    if (graph == nodes_.end()) continue;
    for (const uint64_t node : graph->second) paths_.erase(node);
    nodes_.erase(graph);
  }
  return paths_.size() < most_;
}

void GraphNodes::Clone(uint64_t node, uint64_t original) noexcept {
  const std::lock_guard lock(mutex_);
  const auto copy = paths_.find(node);
  if (copy == paths_.end()) return;
  // It keeps its room, so that its graph makes room when it is gone.
  const auto from = paths_.find(original);
  copy.value() = from == paths_.end() ? kNotCaptured : from->second;
}

void GraphNodes::Destroy(uint32_t graph) noexcept {
  const std::lock_guard lock(mutex_);
  if (!nodes_.contains(graph)) return;
  try {
    gone_.push_back(graph);
  } catch (const std::bad_alloc&) {
    // It keeps its room until Clear().
  }
}

void GraphNodes::Clear() {
  const std::lock_guard lock(mutex_);
  paths_.clear();
  nodes_.clear();
  gone_.clear();
}

std::optional<uint32_t> GraphNodes::PathOf(uint64_t node) const {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(node);
  if (found == paths_.end()) return std::nullopt;
  return found->second;
}

size_t GraphNodes::size() const {
  const std::lock_guard lock(mutex_);
  return paths_.size();
}

}  // namespace pystrobe::gpu
