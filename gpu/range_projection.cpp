// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_projection.h"

#include <algorithm>

#include "gpu/range_nodes.h"
#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

// As deep as threads have ranges open.
constexpr int kMaxDepth = 1 << 12;

uint64_t HashOf(uint32_t range, uint32_t device, uint32_t stream) {
  return MixBits(MixBits(uint64_t{range} << 32 | device) ^ stream);
}

}  // namespace

RangeProjection::RangeProjection(const RangeInstances* instances,
                                 const RangeProjectionOptions& options)
    : instances_(instances), options_(options) {}

void RangeProjection::Clear() {
  open_.clear();
  index_ = {};
  done_ = {};
}

void RangeProjection::Add(const GpuWork& work) {
  if (instances_ == nullptr || work.origin.range == 0) return;
  auto instance = instances_->FindLabel(work.origin.range);
  ++works_;
  for (int depth = 0; instance && depth < kMaxDepth; ++depth) {
    Open& open = OpenOf(*instance, work);
    open.seen = works_;
    ++open.sum.works;
    if (work.begin_ns != 0 && work.end_ns >= work.begin_ns) {
      const bool is_first = open.begin_ns == 0 && open.end_ns == 0;
      open.begin_ns = is_first ? work.begin_ns : std::min(open.begin_ns, work.begin_ns);
      open.end_ns = is_first ? work.end_ns : std::max(open.end_ns, work.end_ns);
      open.sum.busy_ns += static_cast<uint64_t>(work.end_ns - work.begin_ns);
    }
    instance = instances_->Find(instance->parent);
  }
}

uint64_t RangeProjection::HashOfOpen(uint32_t id) const {
  const Open& open = open_[id];
  return HashOf(open.instance, open.sum.device, open.sum.stream);
}

RangeProjection::Open& RangeProjection::OpenOf(const RangeInstances::Instance& instance,
                                               const GpuWork& work) {
  const auto is_it = [&](uint32_t id) {
    const Open& open = open_[id];
    return open.instance == instance.number && open.sum.device == work.device &&
           open.sum.stream == work.stream;
  };
  const auto hash_of = [this](uint32_t id) { return HashOfOpen(id); };
  const uint64_t hash = HashOf(instance.number, work.device, work.stream);
  if (const auto found = index_.Find(hash, is_it)) return open_[*found];
  if (open_.size() >= options_.max_open) MakeRoom();
  const auto fresh = static_cast<uint32_t>(open_.size());
  index_.FindOrAdd(hash, fresh, is_it, hash_of);
  return open_.emplace_back(
      Open{.instance = instance.number,
           .continues = instance.continues,
           .sum = {.node = instance.node, .device = work.device, .stream = work.stream},
           .begin_ns = 0,
           .end_ns = 0,
           .seen = 0});
}

// Half of them, so that it is seldom. What is open yet only where that is more than three quarters.
void RangeProjection::MakeRoom() {
  const auto ended = std::partition(open_.begin(), open_.end(), [this](const Open& open) {
    return instances_->IsOpen(open.instance);
  });
  const auto candidates =
      static_cast<size_t>(open_.end() - ended) * 4 < open_.size() ? open_.begin() : ended;
  const auto later = [](const Open& a, const Open& b) { return a.seen > b.seen; };
  const auto half = candidates + (open_.end() - candidates) / 2;
  std::nth_element(candidates, half, open_.end(), later);
  for (auto open = half; open != open_.end(); ++open) done_.Add(*open, options_.max_sums);
  open_.erase(half, open_.end());
  index_ = {};
  const auto hash_of = [this](uint32_t id) { return HashOfOpen(id); };
  for (uint32_t id = 0; id < open_.size(); ++id) {
    index_.FindOrAdd(hash_of(id), id, [](uint32_t) { return false; }, hash_of);
  }
}

RangeStreamSum& RangeProjection::SumTable::Of(const RangeStreamSum& key, size_t max) {
  const auto hash_of = [&](uint32_t id) {
    return HashOf(sums[id].node, sums[id].device, sums[id].stream);
  };
  const auto is_it = [&](uint32_t id) {
    const RangeStreamSum& sum = sums[id];
    return sum.node == key.node && sum.device == key.device && sum.stream == key.stream;
  };
  const uint64_t hash = HashOf(key.node, key.device, key.stream);
  if (const auto found = index.Find(hash, is_it)) return sums[*found];
  // Streams are the program's: it has room for what it does with each.
  if (sums.size() >= max && key.node != RangeNodes::kOther) {
    return Of({.node = RangeNodes::kOther, .device = key.device, .stream = key.stream}, max);
  }
  index.FindOrAdd(hash, static_cast<uint32_t>(sums.size()), is_it, hash_of);
  return sums.emplace_back(
      RangeStreamSum{.node = key.node, .device = key.device, .stream = key.stream});
}

void RangeProjection::SumTable::Add(const Open& open, size_t max) {
  RangeStreamSum& sum = Of(open.sum, max);
  if (!open.continues) ++sum.instances;
  const auto span_ns = static_cast<uint64_t>(open.end_ns - open.begin_ns);
  sum.span_ns += span_ns;
  // Works of a stream follow each other, but for branches of a graph, which may overlap.
  sum.busy_ns += std::min(open.sum.busy_ns, span_ns);
  sum.works += open.sum.works;
}

std::vector<RangeStreamSum> RangeProjection::Sums() const {
  SumTable all = done_;
  for (const Open& open : open_) all.Add(open, options_.max_sums);
  return std::move(all.sums);
}

}  // namespace pystrobe::gpu
