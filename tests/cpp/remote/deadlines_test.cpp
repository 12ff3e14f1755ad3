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

TEST(RateGovernor, WithoutALimitTheRateStands) {
  RateGovernor governor(1000, 0, seconds(0));
  EXPECT_FALSE(governor.Account(seconds(1), seconds(1)).has_value());
  EXPECT_EQ(governor.rate_hz(), 1000);
}

TEST(RateGovernor, LowersTheRateInProportionAndRaisesItByStages) {
  RateGovernor governor(1000, 0.01, seconds(0));
  auto lowered = governor.Account(milliseconds(20), seconds(1));  // 2 % held, twice what may be
  ASSERT_TRUE(lowered.has_value());
  EXPECT_NEAR(*lowered, 450, 1);
  EXPECT_FALSE(governor.Account(milliseconds(9), seconds(2)).has_value());  // 0.9 %: inside
  auto raised = governor.Account(milliseconds(1), seconds(3));
  ASSERT_TRUE(raised.has_value());
  EXPECT_GT(*raised, *lowered);
  EXPECT_LE(*raised, *lowered * 1.5 + 1e-9);
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
