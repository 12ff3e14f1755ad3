// SPDX-License-Identifier: Apache-2.0
//
// What a set of measured times amounts to, and when there are enough of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pystrobe::gpu {

/// Of times in seconds. Quartiles are interpolated between neighbours (method 7 of Hyndman and Fan,
/// The American Statistician 50, 1996).
struct Summary {
  size_t count = 0;
  double min = 0, max = 0, mean = 0;
  double median = 0, first_quartile = 0, third_quartile = 0;
  double noise = 0;  ///< sample standard deviation by the mean; 0 of fewer than two
};
Summary Summarize(std::span<const double> seconds);

/// How probable a difference at least as great as that of the two sets is if they are of one kind:
/// the two-sided p-value of Mann and Whitney's U test, by its normal approximation with ties
/// corrected. 1 where one of them has fewer than kFewestToCompare.
inline constexpr size_t kFewestToCompare = 5;
double PValueOfDifference(std::span<const double> some, std::span<const double> others);

/// When to stop: as nvbench's criterion `stdrel` does. Times are many enough once they are
/// `min_count` and come to `min_seconds`, and either their noise is below `max_noise`, or it has
/// settled: over the last kNoises looks at it, one every kLookEvery times, it varied by less than a
/// twentieth.
class StopRule {
 public:
  StopRule(size_t min_count, double min_seconds, double max_noise)
      : min_count_(min_count), min_seconds_(min_seconds), max_noise_(max_noise) {}

  void Add(double seconds);
  bool IsMet() const;

 private:
  static constexpr size_t kLookEvery = 16;
  static constexpr size_t kNoises = 16;

  double Noise() const;

  size_t min_count_;
  double min_seconds_, max_noise_;
  // Running mean and sum of squared differences from it (Welford, Technometrics 4, 1962).
  size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
  std::vector<double> noises_;
};

}  // namespace pystrobe::gpu
