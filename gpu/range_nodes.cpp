// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_nodes.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

constexpr size_t kPlaces = 2 * RangeNodes::kMaxNodes;

}  // namespace

Result<RangeNodes> RangeNodes::Make() {
  auto nodes = LazyArray<Node>::Make(kMaxNodes);
  if (!nodes) return Wrap(nodes.error(), "remembering the names of ranges");
  auto index = LazyArray<uint32_t>::Make(kPlaces);
  if (!index) return Wrap(index.error(), "remembering the names of ranges");
  return RangeNodes(*std::move(nodes), *std::move(index));
}

RangeNodes::RangeNodes(LazyArray<Node> nodes, LazyArray<uint32_t> index)
    : nodes_(std::move(nodes)), index_(std::move(index)), mutex_(std::make_unique<std::mutex>()) {
  Clear();
}

void RangeNodes::Clear(size_t max) {
  const std::lock_guard lock(*mutex_);
  index_.Zero();
  nodes_.Zero();
  names_.clear();
  max_ = std::min(max, kMaxNodes);
  nodes_[kOther] = {.parent = kNone, .name = &names_.emplace_back(kOtherName)};
  size_ = 1;
}

uint64_t RangeNodes::HashOf(uint32_t parent, uint32_t domain, std::string_view name) {
  return MixBits(std::hash<std::string_view>()(name) ^ MixBits(uint64_t{parent} << 32 | domain));
}

uint32_t RangeNodes::FindOrAdd(uint32_t parent, uint32_t domain, std::string_view name) {
  if (name == kOtherName) return kOther;
  const uint64_t hash = HashOf(parent, domain, name);
  size_t place = hash % kPlaces;
  const auto find = [&]() -> uint32_t {
    for (;; place = (place + 1) % kPlaces) {
      const uint32_t found = std::atomic_ref(index_[place]).load(std::memory_order_acquire);
      if (found == 0) return kNone;
      const Node& node = nodes_[found - 1];
      const bool is_it =
          node.hash == hash && node.parent == parent && node.domain == domain && *node.name == name;
      if (is_it) return found - 1;
    }
  };
  if (const uint32_t node = find(); node != kNone) return node;
  const std::lock_guard lock(*mutex_);
  // From the place that was free: another may have been added there since.
  if (const uint32_t node = find(); node != kNone) return node;
  if (size_ >= max_) return kOther;
  const auto fresh = static_cast<uint32_t>(size_);
  nodes_[fresh] = {
      .parent = parent, .domain = domain, .name = &names_.emplace_back(name), .hash = hash};
  ++size_;
  std::atomic_ref(index_[place]).store(fresh + 1, std::memory_order_release);
  return fresh;
}

void RangeNodes::Count(uint32_t node) {
  std::atomic_ref(nodes_[node].count).fetch_add(1, std::memory_order_relaxed);
}

void RangeNodes::AddTime(uint32_t node, uint64_t nanoseconds) {
  std::atomic_ref(nodes_[node].host_ns).fetch_add(nanoseconds, std::memory_order_relaxed);
}

}  // namespace pystrobe::gpu
