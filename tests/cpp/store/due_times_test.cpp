// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/due_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace pystrobe::store {
namespace {

constexpr DeadlineSeries kSeries{.last_ns = 5'000'000, .period_ns = 1'000'000, .state = 7};

std::vector<uint64_t> Drawn(DeadlineSeries series, size_t count) {
  std::vector<uint64_t> us{static_cast<uint64_t>(series.last_ns / 1000)};
  while (us.size() < count) us.push_back(static_cast<uint64_t>(series.Draw() / 1000));
  return us;
}

TEST(DueTimes, WithoutASeriesNothingIsKnown) {
  DueTimes due;
  EXPECT_EQ(due.FirstAfter(0), 0U);
  EXPECT_EQ(due.FirstAfter(77), 77U);
}

TEST(DueTimes, AreThoseThatTheSamplerDraws) {
  DueTimes due;
  due.BeginBlock();
  ASSERT_TRUE(due.Add(kSeries));
  EXPECT_EQ(due.FirstAfter(4999), 4999U) << "before the series nothing is known";
  const auto drawn = Drawn(kSeries, 1000);
  for (size_t i = 1; i < drawn.size(); ++i) {
    EXPECT_EQ(due.FirstAfter(drawn[i - 1]), drawn[i]);
    EXPECT_EQ(due.FirstAfter(drawn[i] - 1), drawn[i]);
  }
  EXPECT_EQ(due.FirstAfter(5000), drawn[1]) << "other threads may lag behind";
}

TEST(DueTimes, GoOnWithAnotherSeriesFromItsBeginning) {
  DueTimes due;
  due.BeginBlock();
  ASSERT_TRUE(due.Add(kSeries));
  DeadlineSeries slower = kSeries;
  for (int i = 0; i < 10; ++i) slower.Draw();
  slower.period_ns *= 3;
  due.FirstAfter(100'000);  // further than the slower series begins
  ASSERT_TRUE(due.Add(slower));
  const auto before = Drawn(kSeries, 11), after = Drawn(slower, 20);
  EXPECT_EQ(before.back(), after.front());
  EXPECT_EQ(due.FirstAfter(before[9]), before[10]);
  EXPECT_EQ(due.FirstAfter(after[0]), after[1]);
  EXPECT_EQ(due.FirstAfter(after[18]), after[19]);
}

TEST(DueTimes, WorkAndMemoryAreBounded) {
  DueTimes due;
  due.BeginBlock();
  ASSERT_TRUE(due.Add({.last_ns = 0, .period_ns = 1, .state = 0}));  // never advances
  EXPECT_EQ(due.FirstAfter(uint64_t{1} << 63), uint64_t{1} << 63);
  ASSERT_TRUE(due.Add({.last_ns = 0, .period_ns = 1'000'000, .state = 3}));
  EXPECT_EQ(due.FirstAfter(2000), 2000U) << "all draws of this block are used up";
  due.BeginBlock();
  EXPECT_GT(due.FirstAfter(2000), 2000U);
}

TEST(DueTimes, RefuseWhatWouldOverflow) {
  DueTimes due;
  EXPECT_FALSE(due.Add({.last_ns = 0, .period_ns = 0}));
  EXPECT_FALSE(due.Add({.last_ns = -1, .period_ns = 1000}));
  EXPECT_FALSE(due.Add({.last_ns = 0, .period_ns = DueTimes::kMostPeriodNs + 1}));
  EXPECT_FALSE(due.Add({.last_ns = DueTimes::kMostTimeNs + 1, .period_ns = 1000}));
}

}  // namespace
}  // namespace pystrobe::store
