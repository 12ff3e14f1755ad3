// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/duration_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace pystrobe {
namespace {

constexpr int kBits = 3;  // behind a duration's highest, that tell buckets apart
constexpr uint64_t kPerOctave = uint64_t{1} << kBits;

/// Its durations are those from `first` on, below 2^`shift` more.
struct Bucket {
  uint64_t first;
  int shift;
};

Bucket BucketAt(size_t index) {
  if (index < 2 * kPerOctave) return {index, 0};
  const int shift = static_cast<int>(index / kPerOctave) - 1;
  return {(kPerOctave + index % kPerOctave) << shift, shift};
}

}  // namespace

size_t DurationHistogram::BucketOf(uint64_t ns) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(ns)) - 1 - kBits);
  return static_cast<uint64_t>(shift) * kPerOctave + (ns >> shift);
}

void DurationHistogram::AddTo(size_t bucket, uint64_t count) {
  if (count == 0) return;
  if (bucket >= counts_.size()) counts_.resize(bucket + 1);
  counts_[bucket] += count;
}

uint64_t DurationHistogram::count() const {
  return std::reduce(counts_.begin(), counts_.end(), uint64_t{0});
}

std::optional<uint64_t> DurationHistogram::Quantile(double q) const {
  const uint64_t all = count();
  if (all == 0) return std::nullopt;
  const double rank = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(all));
  uint64_t left = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, all);
  size_t index = 0;
  while (index + 1 < counts_.size() && counts_[index] < left) left -= counts_[index++];
  const auto [first, shift] = BucketAt(index);
  return first + ((uint64_t{1} << shift) >> 1);
}

}  // namespace pystrobe
