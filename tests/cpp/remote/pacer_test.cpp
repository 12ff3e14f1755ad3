// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pacer.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The kernel refuses to move the calling thread from here on.
bool ForbidToMove() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

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

// As where a cpuset has shrunk to one CPU: then it is to take itself for one that shares it.
TEST_F(PacerTest, WhoCannotBeMovedStaysForAWhile) {
  bool forbidden = false;
  std::thread its_thread([&] {  // whatever it may not do, it may not do any more
    Pacer pacer;
    const int cpu = sched_getcpu();
    forbidden = ForbidToMove();
    if (!forbidden) return;
    EXPECT_TRUE(pacer.CanKeepOff(cpu)) << "nothing is known yet";
    pacer.KeepOff(cpu);
    EXPECT_TRUE(MayUse(cpu));
    EXPECT_FALSE(pacer.CanKeepOff(cpu));
    const Nanoseconds patience = MonotonicNow() + seconds(20);
    while (!pacer.CanKeepOff(cpu) && MonotonicNow() < patience) usleep(10'000);
    EXPECT_TRUE(pacer.CanKeepOff(cpu)) << "the cpuset may have grown again";
  });
  its_thread.join();
  if (!forbidden) GTEST_SKIP() << "no seccomp filters here";
}

}  // namespace
}  // namespace pystrobe::remote
