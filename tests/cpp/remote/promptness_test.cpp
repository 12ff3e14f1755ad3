// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/promptness.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace pystrobe::remote {
namespace {

/// What of the calling thread's scheduling others can see.
struct Standing {
  int nice, policy, timer_slack;
  cpu_set_t affinity;

  static Standing Now() {
    Standing now{getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), prctl(PR_GET_TIMERSLACK), {}};
    EXPECT_EQ(sched_getaffinity(0, sizeof now.affinity, &now.affinity), 0);
    return now;
  }
};

class ScopedPromptnessTest : public ::testing::TestWithParam<Urgency> {};

// Under autogroup, and in CPU cgroups, it would draw the group's share of the CPUs to its own.
TEST_P(ScopedPromptnessTest, LeavesTheNiceLevel) {
  const int before = getpriority(PRIO_PROCESS, 0);
  const ScopedPromptness prompt(GetParam());
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

TEST_P(ScopedPromptnessTest, LeavesNothingBehind) {
  const Standing before = Standing::Now();
  {
    const ScopedPromptness prompt(GetParam());
    EXPECT_LT(prctl(PR_GET_TIMERSLACK), before.timer_slack);
    EXPECT_TRUE(PinTo(0, sched_getcpu()));
  }
  const Standing after = Standing::Now();
  EXPECT_EQ(after.nice, before.nice);
  EXPECT_EQ(after.policy, before.policy);
  EXPECT_EQ(after.timer_slack, before.timer_slack);
  EXPECT_TRUE(CPU_EQUAL(&after.affinity, &before.affinity));
}

INSTANTIATE_TEST_SUITE_P(All, ScopedPromptnessTest,
                         ::testing::Values(Urgency::kSoon, Urgency::kAtOnce));

}  // namespace
}  // namespace pystrobe::remote
