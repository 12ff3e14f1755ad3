// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tracer.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <thread>

#include "sampler/remote/promptness.h"
#include "tests/cpp/support/spinning_child.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;

int SleepThenExit(void* late) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  usleep(*static_cast<const useconds_t*>(late));
  _exit(0);
}

/// A child that waits in the kernel, where no signal nor tracer reaches it, until its own child,
/// made as vfork does, ends; then it spins. (A thread sanitizer makes vfork itself a fork.)
class LateChild : public testing::SpinningChild {
 public:
  explicit LateChild(milliseconds late)
      : SpinningChild([late] {
          auto us = static_cast<useconds_t>(late.count() * 1000);
          alignas(16) static char stack[16384];
          clone(SleepThenExit, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &us);
        }) {}
};

TEST(Tracer, HoldsForTheTimeOfTheCopy) {
  LateChild child(milliseconds(0));
  child.WaitForState('R');
  auto tracer = Tracer::Start();
  ASSERT_TRUE(tracer.has_value());
  char seen = 0;
  const Tracer::Outcome outcome = (*tracer)->Hold(child.pid(), [&] {
    seen = child.state();
    usleep(20'000);
  });
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(seen, 't');
  EXPECT_GE(outcome.held, milliseconds(20));
  EXPECT_EQ(child.tracer(), 0);
}

// Who was let go has the CPU before the tracer, which all others come before here, looks again.
TEST(Tracer, WhatTheThreadRunsIsNotHeld) {
  LateChild child(milliseconds(0));
  child.WaitForState('R');
  const int cpu = sched_getcpu();
  ASSERT_TRUE(PinTo(child.pid(), cpu));
  ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(child.pid()), 19), 0);
  clockid_t child_clock;
  ASSERT_EQ(clock_getcpuclockid(child.pid(), &child_clock), 0);
  std::thread([&] {
    const sched_param none{};
    ASSERT_TRUE(PinTo(0, cpu));
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    const auto tracer = Tracer::Start();
    ASSERT_TRUE(tracer.has_value());
    const Nanoseconds start = MonotonicNow(), ran_before = internal::ReadClock(child_clock);
    Nanoseconds held{};
    for (int i = 0; i < 20; ++i) held += (*tracer)->Hold(child.pid(), [] {}).held;
    const Nanoseconds ran = internal::ReadClock(child_clock) - ran_before;
    EXPECT_GT(ran, milliseconds(10));
    EXPECT_LE(held, MonotonicNow() - start - ran / 2);
  }).join();
}

TEST(Tracer, WhatDoesNotStopCostsNothingAndIsLetGoWhenItDoes) {
  LateChild child(milliseconds(400));
  child.WaitForState('D');
  auto tracer = Tracer::Start();
  ASSERT_TRUE(tracer.has_value());
  bool copied = false;
  const Tracer::Outcome outcome = (*tracer)->Hold(child.pid(), [&] { copied = true; });
  EXPECT_FALSE(outcome.stopped);
  EXPECT_TRUE(copied);
  EXPECT_EQ(outcome.held, Nanoseconds::zero());
  EXPECT_NE(child.tracer(), 0);
  // Nobody asks any more; yet it does not stay stopped.
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (child.tracer() != 0 && MonotonicNow() < deadline) usleep(1000);
  EXPECT_EQ(child.tracer(), 0);
  child.WaitForState('R');
}

TEST(Tracer, WhatStopsLateWasNotHeldBefore) {
  LateChild child(milliseconds(400));
  child.WaitForState('D');
  auto tracer = Tracer::Start();
  ASSERT_TRUE(tracer.has_value());
  const Nanoseconds start = MonotonicNow();
  Tracer::Outcome outcome;
  Nanoseconds held{};
  while (!outcome.stopped && MonotonicNow() < start + std::chrono::seconds(10)) {
    outcome = (*tracer)->Hold(child.pid(), [] {});
    held += outcome.held;
  }
  ASSERT_TRUE(outcome.stopped);
  EXPECT_GT(MonotonicNow() - start, milliseconds(150)) << "it was not late";
  EXPECT_LT(held, milliseconds(100)) << "what it waited by itself is not our doing";
}

TEST(Tracer, ItsEndLetsGoOfWhatNeverStopped) {
  LateChild child(milliseconds(60'000));
  child.WaitForState('D');
  auto tracer = Tracer::Start();
  ASSERT_TRUE(tracer.has_value());
  EXPECT_FALSE((*tracer)->Hold(child.pid(), [] {}).stopped);
  EXPECT_NE(child.tracer(), 0);
  tracer->reset();
  // The kernel lets go of it after it has told that the thread has ended (do_exit, kernel/exit.c).
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (child.tracer() != 0 && MonotonicNow() < deadline) usleep(1000);
  EXPECT_EQ(child.tracer(), 0);
}

}  // namespace
}  // namespace pystrobe::remote
