// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tracer.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>

#include "sampler/remote/promptness.h"
#include "tests/cpp/support/spinning_child.h"
#include "tests/cpp/support/thread_of_ours.h"

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
  const Tracer::Outcome outcome = (*tracer)->Hold(child.pid(), Tracer::kAnyMoment, [&] {
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
    Nanoseconds held{}, ran{};
    // Other programs may want that CPU, too.
    while (ran <= milliseconds(10) && MonotonicNow() - start < std::chrono::seconds(10)) {
      for (int i = 0; i < 20; ++i)
        held += (*tracer)->Hold(child.pid(), Tracer::kAnyMoment, [] {}).held;
      ran = internal::ReadClock(child_clock) - ran_before;
    }
    EXPECT_GT(ran, milliseconds(10));
    EXPECT_LE(held, MonotonicNow() - start - ran / 2);
  }).join();
}

/// Has a CPU for as long as it lives, 5 s at most, from all of lower priority.
class RealTimeHog {
 public:
  explicit RealTimeHog(int cpu)
      : thread_([this, cpu] {
          const sched_param high{.sched_priority = 50};
          EXPECT_TRUE(PinTo(0, cpu));
          EXPECT_EQ(sched_setscheduler(0, SCHED_FIFO, &high), 0);
          runs_ = true;
          const Nanoseconds end = MonotonicNow() + std::chrono::seconds(5);
          while (!done_ && !gave_up_) gave_up_ = MonotonicNow() >= end;
        }) {
    while (!runs_) usleep(1000);
  }
  ~RealTimeHog() {
    done_ = true;
    thread_.join();
  }
  bool gave_up() const { return gave_up_; }

 private:
  std::atomic<bool> runs_{false}, done_{false}, gave_up_{false};
  std::thread thread_;
};

/// A tracer that may take CPUs, and a child that has one of two.
class RealTimeTracerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    prompt_.emplace(Urgency::kAtOnce);
    if (!IsRealTime(0)) GTEST_SKIP() << "may not make a thread real-time";
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) (own_cpu_ < 0 ? own_cpu_ : childs_cpu_) = cpu;
    }
    if (childs_cpu_ < 0) GTEST_SKIP() << "one CPU only";
    ASSERT_TRUE(PinTo(0, own_cpu_));
    ASSERT_TRUE(PinTo(child_.pid(), childs_cpu_));
    child_.WaitForState('R');
    auto tracer = Tracer::Start();
    ASSERT_TRUE(tracer.has_value());
    tracer_ = *std::move(tracer);
  }

  testing::SpinningChild child_;  // Not real-time, as what it is forked from is not yet.
  std::optional<ScopedPromptness> prompt_;
  int own_cpu_ = -1, childs_cpu_ = -1;
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(RealTimeTracerTest, TakesTheThreadsCpuBeforeItAsks) {
  int asked_on = -1, copied_on = -1;
  const Tracer::Outcome outcome = tracer_->Hold(
      {childs_cpu_, {}},
      [&] {
        asked_on = sched_getcpu();
        return child_.pid();
      },
      [&] { copied_on = sched_getcpu(); });
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(asked_on, childs_cpu_);
  EXPECT_EQ(copied_on, childs_cpu_);
  EXPECT_EQ(child_.tracer(), 0);
}

TEST_F(RealTimeTracerTest, ComesByItselfAtTheTimeForWhichItWasExpected) {
  EXPECT_TRUE(tracer_->takes_cpus());
  const auto hold = [&](Nanoseconds at) {
    Nanoseconds copied_at{};
    const Tracer::Outcome outcome =
        tracer_->Hold(child_.pid(), {childs_cpu_, at}, [&] { copied_at = MonotonicNow(); });
    EXPECT_TRUE(outcome.stopped);
    EXPECT_GT(outcome.held, Nanoseconds{});
    EXPECT_EQ(outcome.cpu, childs_cpu_);
    EXPECT_GE(copied_at, at);
    return outcome.woken;
  };
  hold({});
  const Nanoseconds next = MonotonicNow() + milliseconds(500);
  tracer_->Expect(next);
  usleep(5000);  // it sleeps, without having heard of that
  EXPECT_TRUE(hold({}));
  usleep(5000);
  EXPECT_FALSE(hold(next));
  usleep(5000);
  EXPECT_TRUE(hold(MonotonicNow() + milliseconds(5)));
}

TEST_F(RealTimeTracerTest, IsAsleepAfterItWasExpectedInVain) {
  const auto hold = [&](Nanoseconds at) {
    return tracer_->Hold(child_.pid(), {childs_cpu_, at}, [] {});
  };
  const auto is_woken_after = [&](uint32_t times_in_vain) {
    Nanoseconds next = MonotonicNow() + milliseconds(100);
    tracer_->Expect(next);
    hold({});
    for (uint32_t i = 0; i < times_in_vain; ++i) {
      tracer_->Expect(next + milliseconds(20));  // said while it sleeps until the one before
      std::this_thread::sleep_until(std::chrono::steady_clock::time_point(next + milliseconds(10)));
      next += milliseconds(20);
    }
    tracer_->Expect(next + milliseconds(500));
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(next + milliseconds(10)));
    return hold(next + milliseconds(500)).woken;
  };
  EXPECT_FALSE(is_woken_after(TimedSleep::kMostInVain - 1));
  EXPECT_TRUE(is_woken_after(TimedSleep::kMostInVain));
}

// It is not where somebody else has the CPU that it is told to leave.
TEST_F(RealTimeTracerTest, ComesFromACpuThatOthersHave) {
  ASSERT_TRUE(tracer_->Hold(child_.pid(), {childs_cpu_, {}}, [] {}).stopped);
  ASSERT_TRUE(PinTo(child_.pid(), own_cpu_));
  const RealTimeHog hog(childs_cpu_);
  const Tracer::Outcome outcome = tracer_->Hold(child_.pid(), {own_cpu_, {}}, [] {});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.cpu, own_cpu_);
  EXPECT_TRUE(tracer_->takes_cpus());
  EXPECT_FALSE(hog.gave_up());
}

TEST_F(RealTimeTracerTest, GoesBackWhereItWasMoved) {
  const auto copied_on = [&] {
    int cpu = -1;
    EXPECT_TRUE(
        tracer_->Hold(child_.pid(), {childs_cpu_, {}}, [&] { cpu = sched_getcpu(); }).stopped);
    return cpu;
  };
  EXPECT_EQ(copied_on(), childs_cpu_);
  ASSERT_TRUE(PinTo(testing::ThreadsOfOurs("tracer").at(0), own_cpu_));
  copied_on();  // it may notice by this one only
  EXPECT_EQ(copied_on(), childs_cpu_);
}

// A program of higher priority has that CPU, for as long as it likes.
TEST_F(RealTimeTracerTest, DoesNotWaitForACpuWithoutEnd) {
  ASSERT_TRUE(PinTo(child_.pid(), own_cpu_));
  const RealTimeHog hog(childs_cpu_);
  int copied_on = -1;
  const Tracer::Outcome outcome =
      tracer_->Hold(child_.pid(), {childs_cpu_, {}}, [&] { copied_on = sched_getcpu(); });
  EXPECT_FALSE(hog.gave_up()) << "it had the CPU all the while";
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(copied_on, own_cpu_);
  EXPECT_FALSE(tracer_->takes_cpus()) << "for a while";
}

TEST(Tracer, WhatDoesNotStopCostsNothingAndIsLetGoWhenItDoes) {
  LateChild child(milliseconds(400));
  child.WaitForState('D');
  auto tracer = Tracer::Start();
  ASSERT_TRUE(tracer.has_value());
  bool copied = false;
  const Tracer::Outcome outcome =
      (*tracer)->Hold(child.pid(), Tracer::kAnyMoment, [&] { copied = true; });
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
    outcome = (*tracer)->Hold(child.pid(), Tracer::kAnyMoment, [] {});
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
  EXPECT_FALSE((*tracer)->Hold(child.pid(), Tracer::kAnyMoment, [] {}).stopped);
  EXPECT_NE(child.tracer(), 0);
  tracer->reset();
  // The kernel lets go of it after it has told that the thread has ended (do_exit, kernel/exit.c).
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (child.tracer() != 0 && MonotonicNow() < deadline) usleep(1000);
  EXPECT_EQ(child.tracer(), 0);
}

}  // namespace
}  // namespace pystrobe::remote
