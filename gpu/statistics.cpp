// SPDX-License-Identifier: Apache-2.0
#include "gpu/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pystrobe::gpu {
namespace {

constexpr double kSettled = 0.05;

double Quantile(std::span<const double> sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double rest = position - static_cast<double>(below);
  return sorted[below] + rest * (sorted[above] - sorted[below]);
}

// Sample standard deviation by the mean.
double NoiseOf(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return mean > 0 ? std::sqrt(squares / (count - 1)) / mean : 0;
}

}  // namespace

Summary Summarize(std::span<const double> seconds) {
  if (seconds.empty()) return {};
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::sort(sorted);
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {.count = sorted.size(),
          .min = sorted.front(),
          .max = sorted.back(),
          .mean = sum / static_cast<double>(sorted.size()),
          .median = Quantile(sorted, 0.5),
          .first_quartile = Quantile(sorted, 0.25),
          .third_quartile = Quantile(sorted, 0.75),
          .noise = NoiseOf(sorted)};
}

double PValueOfDifference(std::span<const double> some, std::span<const double> others) {
  if (some.size() < kFewestToCompare || others.size() < kFewestToCompare) return 1;
  struct Value {
    double seconds;
    bool is_first;
  };
  std::vector<Value> all;
  for (const double seconds : some) all.push_back({seconds, true});
  for (const double seconds : others) all.push_back({seconds, false});
  std::ranges::sort(all, {}, &Value::seconds);
  const auto n1 = static_cast<double>(some.size()), n2 = static_cast<double>(others.size());
  const double n = n1 + n2;
  double rank_sum = 0, ties = 0;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].seconds == all[begin].seconds) ++end;
    const auto tied = static_cast<double>(end - begin);
    const double rank = static_cast<double>(begin + end + 1) / 2;
    ties += tied * (tied * tied - 1);
    for (size_t i = begin; i < end; ++i) rank_sum += all[i].is_first ? rank : 0;
  }
  const double u = rank_sum - n1 * (n1 + 1) / 2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double z = std::max(0.0, std::abs(u - n1 * n2 / 2) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

void StopRule::Add(double seconds) {
  ++count_;
  const double difference = seconds - mean_;
  mean_ += difference / static_cast<double>(count_);
  squares_ += difference * (seconds - mean_);
  if (count_ % kLookEvery == 0) noises_.push_back(Noise());
}

double StopRule::Noise() const {
  if (count_ < 2 || mean_ <= 0) return 0;
  return std::sqrt(squares_ / static_cast<double>(count_ - 1)) / mean_;
}

bool StopRule::IsMet() const {
  if (count_ < min_count_ || mean_ * static_cast<double>(count_) < min_seconds_) return false;
  if (Noise() <= max_noise_) return true;
  return noises_.size() >= kNoises && NoiseOf(std::span(noises_).last(kNoises)) < kSettled;
}

}  // namespace pystrobe::gpu
