// SPDX-License-Identifier: Apache-2.0
#include "gpu/statistics.h"

#include <gtest/gtest.h>

#include <random>

namespace pystrobe::gpu {
namespace {

TEST(Summarize, TellsQuartilesAndNoise) {
  const double values[] = {4, 1, 3, 2, 10};
  const Summary summary = Summarize(values);
  EXPECT_EQ(summary.count, 5U);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 10);
  EXPECT_EQ(summary.mean, 4);
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.first_quartile, 2);
  EXPECT_EQ(summary.third_quartile, 4);
  EXPECT_NEAR(summary.noise, 3.5355339059 / 4, 1e-9);
}

TEST(Summarize, InterpolatesBetweenNeighbours) {
  const double values[] = {1, 2, 3, 4};
  const Summary summary = Summarize(values);
  EXPECT_EQ(summary.median, 2.5);
  EXPECT_EQ(summary.first_quartile, 1.75);
  EXPECT_EQ(summary.third_quartile, 3.25);
}

TEST(Summarize, OfNoneAndOne) {
  EXPECT_EQ(Summarize({}).count, 0U);
  const double one[] = {7};
  EXPECT_EQ(Summarize(one).median, 7);
  EXPECT_EQ(Summarize(one).noise, 0);
}

// By SciPy: mannwhitneyu(range(1, 9), range(5, 13), method="asymptotic").pvalue.
TEST(PValueOfDifference, IsThatOfTheTest) {
  const double some[] = {1, 2, 3, 4, 5, 6, 7, 8}, others[] = {5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_NEAR(PValueOfDifference(some, others), 0.0133130, 1e-6);
  EXPECT_NEAR(PValueOfDifference(others, some), 0.0133130, 1e-6);
}

TEST(PValueOfDifference, IsOneOfEqualsAndOfTooFew) {
  const double same[] = {2, 2, 2, 2, 2}, few[] = {9, 9};
  EXPECT_EQ(PValueOfDifference(same, same), 1);
  EXPECT_EQ(PValueOfDifference(same, few), 1);
}

TEST(PValueOfDifference, IsSeldomSmallWhereThereIsNoDifference) {
  std::mt19937 random(7);
  std::normal_distribution<double> time(100, 5);
  int small = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<double> some, others;
    for (int j = 0; j < 30; ++j) {
      some.push_back(time(random));
      others.push_back(time(random));
    }
    small += PValueOfDifference(some, others) < 0.05;
  }
  EXPECT_GT(small, 5);
  EXPECT_LT(small, 40);
}

TEST(StopRule, NeedsTimesEnoughOfLittleNoise) {
  StopRule rule(10, 0, 0.01);
  for (int i = 0; i < 9; ++i) rule.Add(1);
  EXPECT_FALSE(rule.IsMet());
  rule.Add(1);
  EXPECT_TRUE(rule.IsMet());
}

TEST(StopRule, NeedsSecondsEnough) {
  StopRule rule(1, 5.5, 0.01);
  for (int i = 0; i < 5; ++i) rule.Add(1);
  EXPECT_FALSE(rule.IsMet());
  rule.Add(1);
  EXPECT_TRUE(rule.IsMet());
}

TEST(StopRule, NoiseThatHasSettledIsEnough) {
  StopRule rule(10, 0, 0.01);
  int times = 0;
  for (; times < 10'000 && !rule.IsMet(); ++times) rule.Add(times % 2 == 0 ? 1 : 1.2);
  EXPECT_GE(times, 16 * 16);
  EXPECT_LT(times, 1'000);
}

TEST(StopRule, NoiseThatGrowsIsNot) {
  StopRule rule(10, 0, 0.01);
  double time = 1;
  for (int i = 0; i < 500; ++i) {
    rule.Add(time);
    EXPECT_FALSE(i > 10 && rule.IsMet()) << i;
    time *= 1.01;
  }
}

}  // namespace
}  // namespace pystrobe::gpu
