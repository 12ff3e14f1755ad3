// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/held_time.h"

#include <gtest/gtest.h>

#include <random>

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kUs = std::chrono::microseconds(1);

TEST(RunningMedian, ComesCloseAndStaysThere) {
  std::mt19937_64 random(1);
  RunningMedian median(kUs);
  for (int i = 0; i < 2000; ++i) median.Add(Nanoseconds(random() % 60'000));
  EXPECT_NEAR(static_cast<double>(median.value().count()), 30'000, 6'000);
}

TEST(HeldTime, AQuietMachineWaitsForUsOnly) {
  HeldTime held;
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds waited = (25 + i % 5) * kUs;
    EXPECT_EQ(held.Estimate({waited, 8 * kUs, 1, false}), waited) << i;
  }
}

// Another program has the CPU for milliseconds at a time: every third sample finds the thread
// waiting.
TEST(HeldTime, WhatOthersTookIsNotOurs) {
  HeldTime held;
  Nanoseconds sum{}, waited_in_all{};
  for (int i = 0; i < 3000; ++i) {
    const Nanoseconds waited = i % 3 == 0 ? 3000 * kUs : 25 * kUs;
    waited_in_all += waited;
    sum += held.Estimate({waited, 8 * kUs, 1, false});
  }
  EXPECT_GE(sum, 3000 * 25 * kUs);
  EXPECT_LE(sum, 3000 * 60 * kUs);
  EXPECT_GE(waited_in_all, 3000 * 1000 * kUs);
}

TEST(HeldTime, ACopyThatLostItsCpuCountsWithoutTheWait) {
  HeldTime held;
  for (int i = 0; i < 1000; ++i) held.Estimate({25 * kUs, 8 * kUs, 1, false});
  EXPECT_LE(held.Estimate({5000 * kUs, 30 * kUs, 1, true}), 80 * kUs);
  EXPECT_GE(held.Estimate({5000 * kUs, 2000 * kUs, 1, true}), 2000 * kUs);
}

TEST(HeldTime, WithoutTheKernelsWordTheSwitchesAreAssumed) {
  HeldTime held;
  EXPECT_GT(held.Estimate({std::nullopt, 8 * kUs, 1, false}), 8 * kUs);
  EXPECT_LT(held.Estimate({std::nullopt, 8 * kUs, 1, false}), 40 * kUs);
}

TEST(HeldTime, RepeatedCopiesAreAllCounted) {
  HeldTime held;
  for (int i = 0; i < 1000; ++i) held.Estimate({25 * kUs, 8 * kUs, 1, false});
  EXPECT_EQ(held.Estimate({100 * kUs, 32 * kUs, 4, false}), 100 * kUs);
  EXPECT_EQ(held.Estimate({100 * kUs, Nanoseconds{}, 0, false}), Nanoseconds{});
}

}  // namespace
}  // namespace pystrobe::remote
