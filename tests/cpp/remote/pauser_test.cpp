// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pauser.h"

#include <gtest/gtest.h>
#include <linux/rseq.h>
#include <sched.h>

#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include "sampler/remote/promptness.h"
#include "tests/cpp/support/own_thread.h"
#include "tests/cpp/support/spinning_child.h"
#include "tests/cpp/support/thread_of_ours.h"

namespace pystrobe::remote {
namespace {

using std::chrono::seconds;

// No machine has it, so that no probe can enter it.
constexpr int kNoCpu = CPU_SETSIZE - 1;
// What the kernel writes where a thread has run on none since it was known to rseq.
constexpr uint32_t kNowhere = RSEQ_CPU_ID_UNINITIALIZED;

/// Of the lowest priority, so that it may not take all the time of a CPU for itself.
class SpinningRealTimeChild : public testing::SpinningChild {
 public:
  SpinningRealTimeChild() {
    const sched_param lowest{.sched_priority = 1};
    is_real_time_ = sched_setscheduler(pid(), SCHED_RR, &lowest) == 0;
  }
  bool is_real_time() const { return is_real_time_; }

 private:
  bool is_real_time_ = false;
};

class PauserTest : public ::testing::Test {
 protected:
  CopyJob& NewJob(int cpu) { return copies_.emplace_back(thread_, cpu).job; }

  PauseOutcome Copy(Pauser& pauser, CopyJob& job, int cpu, pid_t tid = gettid()) {
    job.tid = tid;
    PauseTicket ticket = pauser.Begin(job, cpu, MonotonicNow());
    return pauser.Finish(ticket, job);
  }

  // Until one is not disturbed by others.
  PauseOutcome CopyHeld(Pauser& pauser, CopyJob& job, int cpu) {
    PauseOutcome outcome;
    const Nanoseconds deadline = MonotonicNow() + seconds(10);
    while (!outcome.held && MonotonicNow() < deadline) outcome = Copy(pauser, job, cpu);
    return outcome;
  }

  // That this thread may use.
  std::optional<int> OtherCpu() const {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (cpu != cpu_ && CPU_ISSET(cpu, &allowed)) return cpu;
    }
    return std::nullopt;
  }

  ScopedPromptness restores_affinity_;
  int cpu_ = sched_getcpu();
  OwnThread thread_;
  std::deque<OwnCopy> copies_;
};

TEST_F(PauserTest, WithoutPausingNothingIsProved) {
  Pauser pauser(PauseMode::kNone);
  CopyJob& job = NewJob(cpu_);
  const PauseOutcome outcome = Copy(pauser, job, cpu_);
  EXPECT_TRUE(outcome.copied);
  EXPECT_FALSE(outcome.held);
  PauseTicket ticket;
  EXPECT_FALSE(pauser.BeginAhead(job, cpu_, MonotonicNow(), ticket));
}

TEST_F(PauserTest, PreemptsOnTheCpuItIsGiven) {
  Pauser pauser(PauseMode::kPreempt);
  CopyJob& job = NewJob(cpu_);
  const PauseOutcome outcome = CopyHeld(pauser, job, cpu_);
  EXPECT_TRUE(outcome.copied);
  EXPECT_TRUE(outcome.held);
  EXPECT_GT(outcome.held_for, Nanoseconds(0));
  EXPECT_EQ(job.own_cpu, cpu_);
  EXPECT_FALSE(pauser.Busy(cpu_));
}

TEST_F(PauserTest, WithTimeItCopiesBesideTheCpuThatIsHeld) {
  Pauser pauser(PauseMode::kPreempt);
  pauser.ExpectEvery(seconds(1));
  CopyJob& job = NewJob(cpu_);
  if (CopyHeld(pauser, job, cpu_).held && sched_getcpu() == cpu_) GTEST_SKIP() << "one CPU only";
  PauseTicket ticket = pauser.Begin(job, cpu_, MonotonicNow());
  // Until the probe is not kept waiting by others, and then made to do it.
  for (const Nanoseconds end = MonotonicNow() + seconds(10);
       ticket.probe != nullptr && MonotonicNow() < end;) {
    pauser.Finish(ticket, job);
    ticket = pauser.Begin(job, cpu_, MonotonicNow());
  }
  EXPECT_EQ(ticket.probe, nullptr) << "it is done already";
  EXPECT_TRUE(ticket.outcome.held);
  EXPECT_GT(ticket.outcome.held_for, Nanoseconds(0));
  EXPECT_LE(ticket.outcome.held_for, 2 * CpuHold::kLongest);
  EXPECT_EQ(job.own_cpu, cpu_);
  EXPECT_TRUE(job.SubjectHoldsLock());
  EXPECT_FALSE(pauser.BeginAhead(job, cpu_, MonotonicNow() + seconds(1), ticket));
}

TEST_F(PauserTest, WithTimeWhatIsNotHeldWhereItRunsIsNotProved) {
  Pauser pauser(PauseMode::kPreempt);
  pauser.ExpectEvery(seconds(1));
  CopyJob& job = NewJob(cpu_);
  thread_.rseq_cpu = kNowhere;
  for (int i = 0; i < 20; ++i) {
    const PauseOutcome outcome = Copy(pauser, job, cpu_);
    EXPECT_FALSE(outcome.held);
    if (job.own_cpu >= 0) continue;  // made on the CPU itself, as there is no other
    EXPECT_EQ(outcome.holds, 0U);
    EXPECT_FALSE(outcome.disturbed) << "nobody was held whom others could disturb";
  }
  const Nanoseconds until = MonotonicNow() + seconds(10);
  pauser.Sleep(until);
  EXPECT_LT(MonotonicNow(), until) << "such a copy is seen to at once";
}

TEST_F(PauserTest, WithTimeACopyThatIsNotAloneIsLeftToTheProbe) {
  Pauser pauser(PauseMode::kPreempt);
  pauser.ExpectEvery(seconds(1));
  CopyJob& job = NewJob(cpu_);
  job.alone = false;
  if (CopyHeld(pauser, job, cpu_).held && sched_getcpu() == cpu_) GTEST_SKIP() << "one CPU only";
  PauseTicket ticket = pauser.Begin(job, cpu_);
  EXPECT_NE(ticket.probe, nullptr);
  pauser.Finish(ticket, job);
}

TEST(Pauser, TakesTimeAtLowRatesAndDoesNotWaver) {
  Pauser pauser(PauseMode::kNone);
  const auto takes_time_every = [&](double ms) {
    pauser.ExpectEvery(Nanoseconds(static_cast<int64_t>(ms * 1e6)));
    return pauser.takes_time();
  };
  EXPECT_FALSE(takes_time_every(4.9));
  EXPECT_TRUE(takes_time_every(5));
  EXPECT_TRUE(takes_time_every(2.5));
  EXPECT_FALSE(takes_time_every(2.4));
  EXPECT_FALSE(takes_time_every(4.9));
}

// Somebody keeps taking the CPU away, by moving the probe's threads off it and back.
TEST_F(PauserTest, WhatTheProbeLosesIsCopiedAgainAndCounted) {
  Pauser pauser(PauseMode::kPreempt);
  CopyJob& job = NewJob(cpu_);
  if (CopyHeld(pauser, job, cpu_).held && sched_getcpu() == cpu_) GTEST_SKIP() << "one CPU only";
  pauser.ExpectEvery(seconds(1));
  const auto threads = testing::ThreadsOfOurs("probe");
  ASSERT_GE(threads.size(), 2U);
  std::atomic<bool> stop{false};
  const int elsewhere = sched_getcpu();
  std::thread mover([&] {
    while (!stop) {
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(PinTo(threads[i], elsewhere));
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(PinTo(threads[i], cpu_));
    }
  });
  uint32_t most_holds = 0;
  const Nanoseconds deadline = MonotonicNow() + seconds(10);
  while (most_holds < 3 && MonotonicNow() < deadline) {
    const PauseOutcome outcome = Copy(pauser, job, cpu_);
    most_holds = std::max(most_holds, outcome.holds);
    EXPECT_EQ(outcome.held, job.HeldStill());
    EXPECT_TRUE(outcome.disturbed || outcome.holds < 3);
  }
  stop = true;
  mover.join();
  EXPECT_GE(most_holds, 3U) << "more than it takes to wake the probe and to copy";
  EXPECT_TRUE(CopyHeld(pauser, job, cpu_).held);
}

TEST_F(PauserTest, WithOneCpuItPreemptsByRunningItself) {
  ASSERT_TRUE(PinTo(0, cpu_));
  Pauser pauser(PauseMode::kPreempt);
  CopyJob& job = NewJob(cpu_);
  PauseTicket ticket = pauser.Begin(job, cpu_);
  EXPECT_EQ(ticket.probe, nullptr);
  EXPECT_TRUE(CopyHeld(pauser, job, cpu_).held);
  EXPECT_FALSE(pauser.BeginAhead(job, cpu_, MonotonicNow() + seconds(1), ticket));
}

// Before the pacer could ask, the thread was taken off that CPU for it, and charged.
TEST_F(PauserTest, WithOneCpuWhatAThreadWasChargedBeforeIsNotKnown) {
  ASSERT_TRUE(PinTo(0, cpu_));
  for (const PauseMode mode : {PauseMode::kPreempt, PauseMode::kPtrace, PauseMode::kNone}) {
    Pauser pauser(mode);
    CopyJob& job = NewJob(cpu_);
    job.stat_before = SchedStat{};
    Copy(pauser, job, cpu_);
    EXPECT_FALSE(job.stat_before) << PauseModeName(mode);
  }
}

// The pacer leaves that CPU only once the copy is begun.
TEST_F(PauserTest, WhatAThreadWasChargedBeforeIsNotKnownWhereThePacerWasOnItsCpu) {
  if (!OtherCpu()) GTEST_SKIP() << "one CPU only";
  Pauser pauser(PauseMode::kPreempt);
  ASSERT_TRUE(PinTo(0, cpu_));
  CopyJob& job = NewJob(cpu_);
  job.stat_before = SchedStat{};
  Copy(pauser, job, cpu_);
  EXPECT_NE(sched_getcpu(), cpu_);
  EXPECT_FALSE(job.stat_before);
  job.stat_before = SchedStat{};
  Copy(pauser, job, cpu_);
  EXPECT_TRUE(job.stat_before) << "it was elsewhere this time";
}

// What proves that it stood still, as a rule, where our coming has woken it.
TEST_F(PauserTest, WhatASleeperWasChargedBeforeIsKnownWhereThePacerLeavesItsCpu) {
  if (!OtherCpu()) GTEST_SKIP() << "one CPU only";
  Pauser pauser(PauseMode::kPreempt);
  ASSERT_TRUE(PinTo(0, cpu_));
  CopyJob& job = NewJob(cpu_);
  job.stat_before = SchedStat{};
  job.awake_before = false;
  Copy(pauser, job, cpu_);
  EXPECT_NE(sched_getcpu(), cpu_);
  EXPECT_TRUE(job.stat_before);
}

// The thread was expected on another CPU.
TEST_F(PauserTest, WithTimeWhatAThreadWasChargedIsNotKnownWhereItTurnsOutToBeOnThePacersCpu) {
  const auto other = OtherCpu();
  if (!other) GTEST_SKIP() << "one CPU only";
  cpu_set_t both;
  CPU_ZERO(&both);
  CPU_SET(cpu_, &both);
  CPU_SET(*other, &both);
  ASSERT_EQ(sched_setaffinity(0, sizeof both, &both), 0);
  Pauser pauser(PauseMode::kPreempt);
  pauser.ExpectEvery(seconds(1));
  CopyJob& job = NewJob(cpu_);
  // Until the first copy, which shows where it is, is not kept waiting by others.
  const Nanoseconds deadline = MonotonicNow() + seconds(10);
  while (job.own_cpu != cpu_ && MonotonicNow() < deadline) {
    ASSERT_TRUE(PinTo(0, cpu_));
    job.stat_before = SchedStat{};
    Copy(pauser, job, *other);
  }
  EXPECT_EQ(job.own_cpu, cpu_);
  EXPECT_FALSE(job.stat_before);
}

TEST_F(PauserTest, WakesAsLongBeforeACopyAsItTakesToBeReady) {
  Pauser pauser(PauseMode::kPreempt);
  pauser.ExpectEvery(std::chrono::milliseconds(1));
  const Nanoseconds at_first = pauser.lead();
  EXPECT_GT(at_first, Nanoseconds{});
  const auto sleep_and_copy = [&](Nanoseconds late) {
    for (int i = 0; i < 300; ++i) {
      pauser.Sleep(MonotonicNow() - late);
      PauseTicket ticket = pauser.Begin(NewJob(cpu_), cpu_);
      pauser.Finish(ticket, copies_.back().job);
    }
  };
  sleep_and_copy(std::chrono::milliseconds(10));
  if (sched_getcpu() == cpu_) GTEST_SKIP() << "one CPU only";
  EXPECT_GT(pauser.lead(), at_first);
  EXPECT_LE(pauser.lead(), std::chrono::microseconds(200)) << "however late it is";
  pauser.ExpectEvery(std::chrono::microseconds(100));
  EXPECT_LE(pauser.lead(), std::chrono::microseconds(75));
}

TEST_F(PauserTest, WakesAtTheTimeItselfWhereNothingElseIsWoken) {
  const auto lead = [&](PauseMode mode) {
    Pauser pauser(mode);
    pauser.ExpectEvery(std::chrono::milliseconds(1));
    Copy(pauser, NewJob(cpu_), cpu_);
    return pauser.lead();
  };
  EXPECT_EQ(lead(PauseMode::kNone), Nanoseconds{});
  ASSERT_TRUE(PinTo(0, cpu_));
  EXPECT_EQ(lead(PauseMode::kPreempt), Nanoseconds{}) << "on the target's own CPU";
}

TEST_F(PauserTest, WhatIsNotHeldWhereItRunsIsNotProved) {
  Pauser pauser(PauseMode::kPreempt);
  CopyJob& job = NewJob(cpu_);
  thread_.rseq_cpu = kNowhere;
  const PauseOutcome outcome = Copy(pauser, job, cpu_);
  EXPECT_TRUE(outcome.copied);
  EXPECT_FALSE(outcome.held);
}

TEST_F(PauserTest, StopsByPtraceWhereACpuCannotBeEntered) {
  const testing::SpinningChild child;
  Pauser pauser(PauseMode::kAuto);
  EXPECT_EQ(pauser.mode_in_use(), PauseMode::kPreempt);
  const PauseOutcome outcome = Copy(pauser, NewJob(cpu_), kNoCpu, child.pid());
  EXPECT_EQ(pauser.mode_in_use(), PauseMode::kPtrace);
  EXPECT_TRUE(pauser.Check());
  EXPECT_TRUE(outcome.copied);
  EXPECT_TRUE(outcome.held);
  child.WaitForState('R');
}

TEST_F(PauserTest, StopsARealTimeThreadByPtraceAtOnce) {
  const SpinningRealTimeChild child;
  if (!child.is_real_time()) GTEST_SKIP() << "may not make a thread real-time";
  Pauser pauser(PauseMode::kAuto);
  Copy(pauser, NewJob(cpu_), cpu_, child.pid());
  EXPECT_EQ(pauser.mode_in_use(), PauseMode::kPtrace);
  const Nanoseconds start = MonotonicNow();
  EXPECT_TRUE(Copy(pauser, NewJob(cpu_), cpu_, child.pid()).held);
  EXPECT_LT(MonotonicNow() - start, std::chrono::milliseconds(200))
      << "nobody waits for the CPU that it keeps";
}

TEST_F(PauserTest, DoesNothingElseWherePreemptionIsAskedFor) {
  Pauser pauser(PauseMode::kPreempt);
  EXPECT_FALSE(Copy(pauser, NewJob(cpu_), kNoCpu).copied);
  const auto possible = pauser.Check();
  ASSERT_FALSE(possible);
  EXPECT_EQ(possible.error().code, ErrorCode::kPermission);
  EXPECT_NE(possible.error().hint, "");
  EXPECT_FALSE(Copy(pauser, NewJob(cpu_), cpu_).copied) << "it has given up for good";
}

TEST_F(PauserTest, TakesBackWhatIsNotDue) {
  Pauser pauser(PauseMode::kPreempt);
  if (CopyHeld(pauser, NewJob(cpu_), cpu_).held && sched_getcpu() == cpu_) {
    GTEST_SKIP() << "one CPU only";
  }
  const Nanoseconds now = MonotonicNow();
  std::deque<PauseTicket> tickets(3);
  ASSERT_TRUE(pauser.BeginAhead(NewJob(cpu_), cpu_, now, tickets[0]));
  ASSERT_TRUE(pauser.BeginAhead(NewJob(cpu_), cpu_, now + seconds(100), tickets[1]));
  ASSERT_TRUE(pauser.BeginAhead(NewJob(cpu_), cpu_, now + seconds(101), tickets[2]));
  EXPECT_EQ(pauser.EndAhead(), 2U);
  EXPECT_FALSE(pauser.Busy(cpu_));
  EXPECT_TRUE(copies_[1].job.read_ok);
  EXPECT_EQ(pauser.EndAhead(), 0U) << "once";
}

// The one before them is another matter: it has been begun.
TEST_F(PauserTest, TakesBackOnlyWhatWasGivenAhead) {
  Pauser pauser(PauseMode::kPreempt);
  if (CopyHeld(pauser, NewJob(cpu_), cpu_).held && sched_getcpu() == cpu_) {
    GTEST_SKIP() << "one CPU only";
  }
  const Nanoseconds at = MonotonicNow() + std::chrono::milliseconds(50);
  CopyJob& begun = NewJob(cpu_);
  PauseTicket ticket = pauser.Begin(begun, cpu_, at), ahead;
  ASSERT_TRUE(pauser.BeginAhead(NewJob(cpu_), cpu_, at + seconds(100), ahead));
  EXPECT_EQ(pauser.EndAhead(), 1U);
  EXPECT_TRUE(pauser.Finish(ticket, begun).copied);
  EXPECT_GE(begun.began, at);
}

}  // namespace
}  // namespace pystrobe::remote
