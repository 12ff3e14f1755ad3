// SPDX-License-Identifier: Apache-2.0
#include "profiler/model/duration_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <ranges>
#include <vector>

namespace pystrobe {
namespace {

constexpr double kError = 0.0625;

DurationHistogram HistogramOf(const std::vector<uint64_t>& durations) {
  DurationHistogram histogram;
  for (const uint64_t ns : durations) histogram.Add(ns);
  return histogram;
}

uint64_t ExactQuantile(const std::vector<uint64_t>& sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

TEST(DurationHistogram, HasNoQuantileOfNothing) {
  const DurationHistogram none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.Median(), std::nullopt);
}

TEST(DurationHistogram, TellsWhatIsShortExactly) {
  for (uint64_t ns = 0; ns < 16; ++ns) EXPECT_EQ(HistogramOf({ns}).Median(), ns);
  const DurationHistogram three = HistogramOf({9, 3, 3, 15});
  EXPECT_EQ(three.Quantile(0), 3U);
  EXPECT_EQ(three.Median(), 3U) << "half of them are no longer";
  EXPECT_EQ(three.Quantile(0.51), 9U);
  EXPECT_EQ(three.Quantile(1), 15U);
}

TEST(DurationHistogram, TellsAnyOneDurationToItsError) {
  for (int bits = 4; bits < 64; ++bits) {
    const uint64_t power = uint64_t{1} << bits;
    for (const uint64_t ns : {power, power + power / 16, power + power / 2, power - 1 + power}) {
      const uint64_t told = *HistogramOf({ns}).Median();
      const auto off = static_cast<double>(told > ns ? told - ns : ns - told);
      EXPECT_LE(off, kError * static_cast<double>(ns)) << ns;
    }
  }
}

TEST(DurationHistogram, BucketsFollowEachOther) {
  size_t last = 0;
  for (uint64_t ns = 1; ns < 100'000; ++ns) {
    const size_t bucket = DurationHistogram::BucketOf(ns);
    EXPECT_TRUE(bucket == last || bucket == last + 1) << ns;
    last = bucket;
  }
  EXPECT_EQ(DurationHistogram::BucketOf(~uint64_t{0}), DurationHistogram::kMostBuckets - 1);
}

TEST(DurationHistogram, QuantilesOfManyAreAsExactAsPromised) {
  std::mt19937_64 random(42);  // NOLINT(bugprone-random-generator-seed): the same each time
  std::lognormal_distribution<double> short_ones(std::log(5'000), 0.4);
  std::lognormal_distribution<double> long_ones(std::log(300'000), 1);
  std::vector<uint64_t> durations;
  for (int i = 0; i < 20'000; ++i) {
    durations.push_back(
        static_cast<uint64_t>(i % 10 == 0 ? long_ones(random) : short_ones(random)));
  }
  const DurationHistogram histogram = HistogramOf(durations);
  EXPECT_EQ(histogram.count(), durations.size());
  std::ranges::sort(durations);
  for (const double q : {0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(ExactQuantile(durations, q));
    EXPECT_NEAR(static_cast<double>(*histogram.Quantile(q)), exact, kError * exact) << q;
  }
}

TEST(DurationHistogram, KeepsNoMoreThanItHasUseFor) {
  DurationHistogram histogram = HistogramOf({10'000});
  EXPECT_EQ(histogram.counts().size(), DurationHistogram::BucketOf(10'000) + 1);
  histogram.AddTo(DurationHistogram::kMostBuckets - 1, 0);
  EXPECT_EQ(histogram, HistogramOf({10'000})) << "nothing was added";
}

}  // namespace
}  // namespace pystrobe
