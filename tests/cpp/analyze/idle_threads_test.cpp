// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/idle_threads.h"

#include <gmock/gmock.h>

#include "tests/cpp/support/units.h"

namespace pystrobe::analyze {
namespace {

using ::testing::ElementsAre;
using testing::kMs;

constexpr uint64_t kSecond = 1'000 * kMs;

TEST(HardlyRan, MeansLessThanOnePercent) {
  EXPECT_TRUE(HardlyRan({.wall_ns = 100 * kMs, .cpu_ns = kMs - 1}, 0));
  EXPECT_FALSE(HardlyRan({.wall_ns = 100 * kMs, .cpu_ns = kMs}, 0));
  EXPECT_FALSE(HardlyRan({}, 0));
  EXPECT_TRUE(HardlyRan({.samples = 100, .wall_ns = 100 * kMs}, 0));
  EXPECT_FALSE(HardlyRan({.samples = 100, .cpu_samples = 1, .wall_ns = 100 * kMs}, 0));
  EXPECT_FALSE(HardlyRan({.samples = 100, .gil_samples = 1, .wall_ns = 100 * kMs}, 0));
  EXPECT_TRUE(
      HardlyRan({.samples = 200, .cpu_samples = 1, .gil_samples = 1, .wall_ns = 200 * kMs}, 0));
}

TEST(HardlyRan, AShortLifeProvesNothing) {
  const Weights asleep{.samples = 30, .wall_ns = 30 * kMs};
  EXPECT_FALSE(HardlyRan(asleep, 10'000 * kMs)) << "a request's thread";
  EXPECT_TRUE(HardlyRan(asleep, 30 * kMs)) << "a short recording";
  EXPECT_TRUE(HardlyRan({.samples = 100, .wall_ns = 100 * kMs}, 10'000 * kMs));
}

/// Threads that live for the whole of three seconds, and how long they ran.
std::vector<bool> IdleOf(std::initializer_list<uint64_t> used_ms) {
  std::vector<ThreadProfile> threads;
  for (const uint64_t ms : used_ms) {
    threads.push_back({.thread = ThreadIndex{0},
                       .total = {.samples = 3000, .wall_ns = 3 * kSecond, .cpu_ns = ms * kMs},
                       .unseen = {},
                       .stacks = {}});
  }
  MarkIdle(threads, 3 * kSecond);
  std::vector<bool> idle;
  for (const ThreadProfile& thread : threads) idle.push_back(thread.idle);
  return idle;
}

TEST(MarkIdle, IsOfThoseThatHardlyRan) {
  EXPECT_THAT(IdleOf({2000, 30, 29, 0}), ElementsAre(false, false, true, true));
}

TEST(MarkIdle, ManyThatRanALittleAreNotIdleTogether) {
  EXPECT_THAT(IdleOf({27, 27, 27, 27}), ElementsAre(false, false, false, false));
  EXPECT_THAT(IdleOf({15, 15, 0}), ElementsAre(true, true, true));
}

TEST(MarkIdle, ThoseBesideThemThatUsedLessThanTheirPartAre) {
  EXPECT_THAT(IdleOf({2000, 27, 27, 4, 0}), ElementsAre(false, false, false, true, true));
}

}  // namespace
}  // namespace pystrobe::analyze
