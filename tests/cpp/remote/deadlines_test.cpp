// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/deadlines.h"

#include <gtest/gtest.h>

#include <set>

#include "sampler/remote/rate_governor.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Deadlines, KeepTheRateOnAverageAndVaryBetweenHalfAndOneAndAHalfPeriods) {
  Deadlines deadlines(seconds(100), 1000, 7);
  std::set<int64_t> intervals;
  Nanoseconds last = deadlines.next();
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(deadlines.Advance(last), 0U);
    Nanoseconds interval = deadlines.next() - last;
    EXPECT_GE(interval, deadlines.period() / 2);
    EXPECT_LT(interval, deadlines.period() * 3 / 2);
    intervals.insert(interval.count());
    last = deadlines.next();
  }
  EXPECT_NEAR(static_cast<double>((last - seconds(100)).count()) / 1e9, 10.0, 0.1);
  EXPECT_GT(intervals.size(), 9000U);
}

TEST(Deadlines, SkipAndCountWhatIsTooFarBehind) {
  Deadlines deadlines(seconds(0), 1000, 7);
  uint64_t skipped = deadlines.Advance(seconds(1));
  EXPECT_NEAR(static_cast<double>(skipped), 990, 60);
  EXPECT_GE(deadlines.next() + Deadlines::kMostBehind * deadlines.period(), seconds(1));
}

TEST(Deadlines, AFewMissedOnesAreCaughtUpWith) {
  Deadlines deadlines(seconds(0), 1000, 7);
  EXPECT_EQ(deadlines.Advance(milliseconds(3)), 0U);
  EXPECT_LT(deadlines.next(), milliseconds(3));
}

TEST(Deadlines, AreTheSameWhenAskedForAhead) {
  Deadlines one(seconds(100), 1000, 7), other(seconds(100), 1000, 7);
  const Nanoseconds fifth = one.Ahead(5);
  EXPECT_EQ(one.next(), seconds(100));
  for (int i = 0; i < 5; ++i) {
    one.Pop();
    EXPECT_EQ(other.Advance(seconds(100)), 0U);
    EXPECT_EQ(one.next(), other.next());
  }
  EXPECT_EQ(one.next(), fifth);
}

TEST(RateGovernor, WithoutALimitTheRateStands) {
  RateGovernor governor(1000, 0, seconds(0));
  EXPECT_FALSE(governor.Account(seconds(1), seconds(1)).has_value());
  EXPECT_EQ(governor.rate_hz(), 1000);
}

// What a run at the governor's rate holds in all, where every look costs `cost`.
double ShareHeld(RateGovernor& governor, Nanoseconds cost, Nanoseconds duration) {
  Nanoseconds now{}, held{};
  while (now < duration) {
    now += Nanoseconds(static_cast<int64_t>(1e9 / governor.rate_hz()));
    held += cost;
    governor.Account(cost, now);
  }
  return std::chrono::duration<double>(held) / now;
}

TEST(RateGovernor, StaysInsideFromTheStart) {
  for (int cost_us : {5, 20, 60, 500}) {
    for (int run_s : {1, 5, 60}) {
      RateGovernor governor(1000, 0.01, seconds(0));
      const double share = ShareHeld(governor, std::chrono::microseconds(cost_us), seconds(run_s));
      const bool long_enough = run_s > 1 || cost_us < 100;
      if (long_enough) {
        EXPECT_LE(share, 0.0101) << cost_us << " us for " << run_s << " s";
      }
    }
  }
}

TEST(RateGovernor, UsesWhatItMay) {
  RateGovernor cheap(1000, 0.01, seconds(0)), dear(1000, 0.01, seconds(0));
  ShareHeld(cheap, std::chrono::microseconds(5), seconds(20));
  EXPECT_EQ(cheap.rate_hz(), 1000);
  EXPECT_GT(ShareHeld(dear, std::chrono::microseconds(100), seconds(60)), 0.007);
}

TEST(RateGovernor, TellsLearningFromLimiting) {
  RateGovernor cheap(1000, 0.01, seconds(0)), dear(1000, 0.01, seconds(0));
  ShareHeld(cheap, std::chrono::microseconds(5), seconds(10));
  EXPECT_EQ(cheap.limited(), Nanoseconds(0)) << "the rate rose as fast as it could";
  ShareHeld(dear, std::chrono::microseconds(50), seconds(10));
  EXPECT_GT(dear.limited(), seconds(8));
  EXPECT_LE(dear.limited(), seconds(10));
}

TEST(RateGovernor, NeverAsksForMoreThanWantedNorForNothing) {
  RateGovernor governor(100, 0.001, seconds(0));
  Nanoseconds now = seconds(0);
  for (int i = 0; i < 50; ++i) governor.Account(milliseconds(500), now += seconds(1));
  EXPECT_GE(governor.rate_hz(), RateGovernor::kLeastHz);
  for (int i = 0; i < 50; ++i) governor.Account(Nanoseconds(0), now += seconds(1));
  EXPECT_EQ(governor.rate_hz(), 100);
}

}  // namespace
}  // namespace pystrobe::remote
