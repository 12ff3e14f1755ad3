// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pacer.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PacerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (pacer_.has_one_cpu()) GTEST_SKIP() << "one CPU only";
  }

  static bool MayUse(int cpu) {
    cpu_set_t now;
    CPU_ZERO(&now);
    EXPECT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    return CPU_ISSET(cpu, &now);
  }

  // The first that it was allowed, or the one after.
  int CpuNumber(int index) const {
    int cpu = 0;
    while (!CPU_ISSET(cpu, &pacer_.allowed()) || index-- > 0) ++cpu;
    return cpu;
  }

  ScopedPromptness restores_affinity_;
  Pacer pacer_;
};

TEST_F(PacerTest, KeepsOffOneCpuAtATime) {
  const int first = CpuNumber(0), second = CpuNumber(1);
  pacer_.KeepOff(first);
  EXPECT_FALSE(MayUse(first));
  pacer_.KeepOff(-1);
  EXPECT_FALSE(MayUse(first)) << "nowhere is no CPU";
  pacer_.KeepOff(second);
  EXPECT_TRUE(MayUse(first));
  EXPECT_FALSE(MayUse(second));
}

TEST_F(PacerTest, AWakeUpBeforeItSleepsIsNotLost) {
  pacer_.Wake();
  const Nanoseconds until = MonotonicNow() + seconds(10);
  pacer_.Sleep(until);
  EXPECT_LT(MonotonicNow(), until);
}

// Others have the CPUs that are left to it.
TEST_F(PacerTest, WhoWakesTooLateHasAllCpusAgainForAWhile) {
  const int cpu = CpuNumber(0);
  pacer_.KeepOff(cpu);
  pacer_.Sleep(MonotonicNow() - milliseconds(1));
  EXPECT_FALSE(MayUse(cpu)) << "a millisecond is not late";
  pacer_.Wake();  // a probe may have need of it meanwhile
  pacer_.Sleep(MonotonicNow() - milliseconds(50));
  EXPECT_TRUE(MayUse(cpu));
  pacer_.KeepOff(cpu);
  EXPECT_TRUE(MayUse(cpu)) << "else it would starve there again";
}

}  // namespace
}  // namespace pystrobe::remote
