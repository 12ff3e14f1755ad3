// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_stay.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <functional>

#include "profiler/base/clock.h"
#include "profiler/base/thread.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

// How many of a hundred stays last to the end of `work`.
int StaysThatLast(const std::function<void()>& work) {
  int lasting = 0;
  for (int i = 0; i < 100; ++i) {
    const CpuStay stay;
    work();
    lasting += stay.Lasts();
  }
  return lasting;
}

void Spin() {
  const Nanoseconds end = MonotonicNow() + std::chrono::microseconds(20);
  while (MonotonicNow() < end) {
  }
}

TEST(CpuStay, LastsWhileNobodyElseHasTheCpu) {
  // Others may want the CPU now and then.
  EXPECT_GT(StaysThatLast(Spin), 50);
  // System calls that do not sleep are of no consequence.
  EXPECT_GT(StaysThatLast([] { getppid(); }), 50);
}

TEST(CpuStay, EndsWhenTheThreadSleeps) {
  EXPECT_EQ(StaysThatLast([] { usleep(100); }), 0);
}

TEST(CpuStay, EndsWhenTheThreadIsMoved) {
  const ScopedPromptness restores_affinity;
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one CPU only";
  const auto move = [&allowed] {
    const int from = sched_getcpu();
    int to = 0;
    while (to == from || !CPU_ISSET(to, &allowed)) ++to;
    ASSERT_TRUE(PinTo(0, to));
  };
  EXPECT_EQ(StaysThatLast(move), 0);
  EXPECT_EQ(StaysThatLast([&move] {
              const int from = sched_getcpu();
              move();
              ASSERT_TRUE(PinTo(0, from));
            }),
            0)
      << "and back";
}

}  // namespace
}  // namespace pystrobe::remote
