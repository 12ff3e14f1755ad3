// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernel_sums.h"

#include <algorithm>
#include <bit>

#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

uint64_t HashOf(const SumKey& key) {
  const auto pair = [](uint64_t high, uint64_t low) { return high << 32 | low; };
  const uint64_t origin = MixBits(key.origin.path);
  const uint64_t captured = key.captured ? uint64_t{*key.captured} + 1 : 0;
  const uint64_t place = pair(key.stream, key.device << 2 | static_cast<uint32_t>(key.kind));
  return MixBits(origin ^ MixBits(place ^ MixBits(captured)) ^ static_cast<uint64_t>(key.kernel));
}

size_t BucketOf(uint64_t nanoseconds) {
  return std::min(static_cast<size_t>(std::bit_width(nanoseconds)), WorkSum::kBuckets - 1);
}

}  // namespace

KernelSums::KernelSums(const KernelSumsOptions& options)
    : options_(options), kernels_(options.max_kernels) {
  Clear();
}

void KernelSums::Clear() {
  keys_.clear();
  sums_.clear();
  index_ = {};
  spans_.clear();
  next_span_ = 0;
  spans_lost_ = count_ = total_ns_ = overflowed_ = 0;
  for (size_t kind = 0; kind < kWorkKinds; ++kind) {
    keys_.push_back({.origin = kUnknownOrigin,
                     .kernel = KernelTable::kOtherKernels,
                     .kind = static_cast<WorkKind>(kind)});
    sums_.emplace_back();
  }
}

void KernelSums::AddUntimed(const GpuWork& work, uint64_t count, bool is_of_several) {
  const uint32_t number = SumOf(work);
  if (is_of_several || number < kWorkKinds) overflowed_ += count;
  sums_[number].untimed += count;
}

void KernelSums::Add(const GpuWork& work) {
  const uint32_t number = SumOf(work);
  WorkSum& sum = sums_[number];
  const bool is_of_several =
      work.kind == WorkKind::kKernel && keys_[number].kernel == KernelTable::kOtherKernels;
  if (is_of_several || number < kWorkKinds) ++overflowed_;
  sum.bytes += work.bytes;
  if (work.kind == WorkKind::kKernel) sum.last_grid = work.grid;
  if (work.begin_ns == 0 || work.end_ns < work.begin_ns) {
    ++sum.untimed;
    return;
  }
  const auto nanoseconds = static_cast<uint64_t>(work.end_ns - work.begin_ns);
  ++sum.count;
  sum.total_ns += nanoseconds;
  sum.min_ns = std::min(sum.min_ns, nanoseconds);
  sum.max_ns = std::max(sum.max_ns, nanoseconds);
  ++sum.buckets[BucketOf(nanoseconds)];
  ++count_;
  total_ns_ += nanoseconds;
  if (options_.max_spans == 0) return;
  if (work.begin_ns < 0) {  // no moment of a timeline
    ++spans_lost_;
    return;
  }
  const WorkSpan span{.begin_ns = work.begin_ns,
                      .end_ns = work.end_ns,
                      .sum = number,
                      .launch = work.launch,
                      .bytes = work.bytes};
  if (spans_.size() < options_.max_spans) {
    spans_.push_back(span);
    return;
  }
  ++spans_lost_;
  spans_[next_span_] = span;
  next_span_ = (next_span_ + 1) % spans_.size();
}

uint32_t KernelSums::SumOf(const GpuWork& work) {
  return SumOf(SumKey{.origin = {.path = work.origin.path},
                      .captured = work.captured,
                      .kernel = kernels_.Intern(work.name, work.shape),
                      .device = work.device,
                      .stream = work.stream,
                      .kind = work.kind});
}

uint32_t KernelSums::SumOf(const SumKey& key) {
  const auto fresh = static_cast<uint32_t>(keys_.size());
  const auto is_it = [&](uint32_t id) { return keys_[id] == key; };
  const auto hash_of = [&](uint32_t id) { return HashOf(keys_[id]); };
  if (fresh >= kWorkKinds + options_.max_sums) {
    return index_.Find(HashOf(key), is_it).value_or(static_cast<uint32_t>(key.kind));
  }
  const uint32_t found = index_.FindOrAdd(HashOf(key), fresh, is_it, hash_of);
  if (found == fresh) {
    keys_.push_back(key);
    sums_.emplace_back();
  }
  return found;
}

std::vector<WorkSpan> KernelSums::Spans() const {
  std::vector<WorkSpan> ordered = spans_;
  std::ranges::rotate(ordered, ordered.begin() + static_cast<std::ptrdiff_t>(next_span_));
  return ordered;
}

}  // namespace pystrobe::gpu
