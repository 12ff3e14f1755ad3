// SPDX-License-Identifier: Apache-2.0
//
// How durations are distributed, in little room. [one thread at a time]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pystrobe {

/// Counts of durations in ns by buckets: those below 16 ns each have their own, and from there on
/// eight share what lies between a power of two and the next. So a quantile is exact below 16 ns,
/// and else off by 6.25 % at most, whatever durations come. Memory for the buckets up to the
/// highest that is used: 4 KiB at most.
class DurationHistogram {
 public:
  /// Of them all, up to 2^64 - 1 ns.
  static constexpr size_t kMostBuckets = 496;
  static size_t BucketOf(uint64_t ns);

  void Add(uint64_t ns) { AddTo(BucketOf(ns), 1); }
  /// `bucket`: below kMostBuckets.
  void AddTo(size_t bucket, uint64_t count);

  /// Of each bucket up to the highest that is used.
  std::span<const uint64_t> counts() const { return counts_; }
  uint64_t count() const;
  /// The duration that the share `q` of all are as long as or shorter; 0 and less: the shortest, 1
  /// and more: the longest. Nullopt where there are none.
  std::optional<uint64_t> Quantile(double q) const;
  std::optional<uint64_t> Median() const { return Quantile(0.5); }

  friend bool operator==(const DurationHistogram&, const DurationHistogram&) = default;

 private:
  std::vector<uint64_t> counts_;
};

}  // namespace pystrobe
