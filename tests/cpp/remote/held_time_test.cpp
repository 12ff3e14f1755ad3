// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/held_time.h"

#include <gtest/gtest.h>

#include <random>

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kUs = std::chrono::microseconds(1);

TEST(RunningQuantile, ComesCloseAndStaysThere) {
  std::mt19937_64 random(1);
  RunningQuantile tenth(0.1, kUs), median(0.5, kUs);
  for (int i = 0; i < 5000; ++i) {
    const Nanoseconds sample(random() % 60'000);
    tenth.Add(sample);
    median.Add(sample);
  }
  EXPECT_NEAR(static_cast<double>(tenth.value().count()), 6'000, 1'500);
  EXPECT_NEAR(static_cast<double>(median.value().count()), 30'000, 6'000);
}

TEST(HeldTime, AQuietMachineWaitsForUsOnly) {
  HeldTime held;
  Nanoseconds pending{};
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds waited = (25 + i % 5) * kUs;
    EXPECT_EQ(held.Estimate({Waiting{waited, 1}, 8 * kUs, 1, false}, pending), waited) << i;
  }
}

// Another program has the CPU for milliseconds at a time: every third sample finds the thread
// waiting.
TEST(HeldTime, WhatOthersTookIsNotOurs) {
  HeldTime held;
  Nanoseconds pending{};
  Nanoseconds sum{}, waited_in_all{};
  for (int i = 0; i < 3000; ++i) {
    const Nanoseconds waited = i % 3 == 0 ? 3000 * kUs : 25 * kUs;
    waited_in_all += waited;
    const uint64_t arrivals = i % 3 == 0 ? 2 : 1;
    sum += held.Estimate({Waiting{waited, arrivals}, 8 * kUs, 1, false}, pending);
  }
  EXPECT_GE(sum, 3000 * 25 * kUs);
  EXPECT_LE(sum, 3000 * 28 * kUs);
  EXPECT_GE(waited_in_all, 3000 * 1000 * kUs);
}

// On a CPU that others want as well, the next turn after ours is mostly theirs.
TEST(HeldTime, TheTurnOfOthersAfterOursIsTheirs) {
  HeldTime held;
  Nanoseconds pending{};
  Nanoseconds sum{};
  for (int i = 0; i < 3000; ++i) {
    const Nanoseconds waited = i % 4 == 0 ? 25 * kUs : 3000 * kUs;
    sum += held.Estimate({Waiting{waited, 1}, 8 * kUs, 1, false}, pending);
  }
  EXPECT_GE(sum, 3000 * 25 * kUs);
  EXPECT_LE(sum, 3000 * 45 * kUs);
}

TEST(HeldTime, WhoWaitsAlreadyWaitsLonger) {
  HeldTime held;
  Nanoseconds pending{};
  for (int i = 0; i < 1000; ++i) held.Estimate({Waiting{25 * kUs, 1}, 8 * kUs, 1, false}, pending);
  // At a rate beyond what can be had one copy follows the other, and only the last sees the wait.
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(held.Estimate({Waiting{0 * kUs, 0}, 8 * kUs, 1, false}, pending),
              Nanoseconds::zero());
  }
  EXPECT_EQ(held.Estimate({Waiting{130 * kUs, 1}, 8 * kUs, 1, false}, pending), 130 * kUs);
  EXPECT_LE(held.Estimate({Waiting{130 * kUs, 1}, 8 * kUs, 1, false}, pending), 50 * kUs);
}

TEST(HeldTime, WhatOneThreadIsYetToWaitIsNoOthers) {
  HeldTime held;
  Nanoseconds pending{}, others{};
  for (int i = 0; i < 1000; ++i) held.Estimate({Waiting{25 * kUs, 1}, 8 * kUs, 1, false}, pending);
  for (int i = 0; i < 15; ++i) held.Estimate({Waiting{0 * kUs, 0}, 8 * kUs, 1, false}, pending);
  EXPECT_LE(held.Estimate({Waiting{130 * kUs, 1}, 8 * kUs, 1, false}, others), 50 * kUs);
  EXPECT_EQ(held.Estimate({Waiting{130 * kUs, 1}, 8 * kUs, 1, false}, pending), 130 * kUs);
}

// At a low rate nearly every sample finds that others had the CPU since the one before.
TEST(HeldTime, IsLearnedFromTheFewSamplesWithoutOthers) {
  HeldTime held;
  Nanoseconds pending{};
  Nanoseconds sum{};
  for (int i = 0; i < 3000; ++i) {
    const bool alone = i % 20 == 0;
    const Waiting waited = alone ? Waiting{25 * kUs, 1} : Waiting{20'000 * kUs, 9};
    sum += held.Estimate({waited, 8 * kUs, 1, false}, pending);
  }
  EXPECT_GE(sum, 3000 * 15 * kUs);
  EXPECT_LE(sum, 3000 * 30 * kUs);
}

TEST(HeldTime, ACopyThatLostItsCpuCountsWithoutTheWait) {
  HeldTime held;
  Nanoseconds pending{};
  for (int i = 0; i < 1000; ++i) held.Estimate({Waiting{25 * kUs, 1}, 8 * kUs, 1, false}, pending);
  EXPECT_LE(held.Estimate({Waiting{5000 * kUs, 1}, 30 * kUs, 1, true}, pending), 80 * kUs);
  EXPECT_GE(held.Estimate({Waiting{5000 * kUs, 1}, 2000 * kUs, 1, true}, pending), 2000 * kUs);
}

TEST(HeldTime, WithoutTheKernelsWordTheSwitchesAreAssumed) {
  HeldTime held;
  Nanoseconds pending{};
  EXPECT_GT(held.Estimate({std::nullopt, 8 * kUs, 1, false}, pending), 8 * kUs);
  EXPECT_LT(held.Estimate({std::nullopt, 8 * kUs, 1, false}, pending), 40 * kUs);
}

TEST(HeldTime, RepeatedCopiesAreAllCounted) {
  HeldTime held;
  Nanoseconds pending{};
  for (int i = 0; i < 1000; ++i) held.Estimate({Waiting{25 * kUs, 1}, 8 * kUs, 1, false}, pending);
  EXPECT_EQ(held.Estimate({Waiting{100 * kUs, 4}, 32 * kUs, 4, false}, pending), 100 * kUs);
  EXPECT_EQ(held.Estimate({Waiting{100 * kUs, 1}, Nanoseconds{}, 0, false}, pending),
            Nanoseconds{});
}

}  // namespace
}  // namespace pystrobe::remote
