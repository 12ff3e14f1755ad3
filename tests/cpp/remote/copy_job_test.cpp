// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/copy_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "profiler/base/scoped_fd.h"
#include "sampler/remote/promptness.h"
#include "tests/cpp/support/child.h"
#include "tests/cpp/support/own_thread.h"
#include "tests/cpp/support/spinning_child.h"

namespace pystrobe::remote {
namespace {

struct OneHolder : LockHolders {
  std::optional<Holder> FindHolder(Address tstate) const override {
    return tstate == holder.copy->plan->tstate() ? std::optional(holder) : std::nullopt;
  }
  Holder holder{};
};

/// Two threads under one lock: the chosen one, and another that has the lock when the copy is made.
class CopyJobTest : public ::testing::Test {
 protected:
  CopyJobTest() {
    EXPECT_TRUE(PinTo(0, cpu_));
    chosen_.gil[0] = other_.gil[0];
    const CopyJob& others = others_copy_.job;
    holders_.holder = {others.threads.front(), others.witness, 0, 4711, 0xbee};
    job_.holders = &holders_;
  }

  ScopedPromptness restores_affinity_;
  int cpu_ = sched_getcpu();
  OwnThread chosen_, other_;
  OwnCopy copy_{chosen_, cpu_}, others_copy_{other_, cpu_};
  CopyJob& job_ = copy_.job;
  // Until nobody comes in between.
  void RunUndisturbed() {
    do job_.Run();
    while (!job_.HeldStill());
  }

  OneHolder holders_;
};

TEST_F(CopyJobTest, TurnsToWhoHasTheLockByThen) {
  other_.frame[1] = 0xbeef;
  job_.stat_before = SchedStat{};
  job_.Run();
  EXPECT_EQ(job_.tstate(), OwnThread::AddressOf(other_.state));
  EXPECT_EQ(job_.tid, 4711);
  EXPECT_EQ(job_.threads.front()->frames.at(0).code, 0xbeefU);
  EXPECT_TRUE(job_.SubjectHoldsLock());
  EXPECT_TRUE(job_.IsWhole());
  EXPECT_FALSE(job_.stat_before) << "that was the chosen one's";
}

TEST_F(CopyJobTest, ProvesItByThatOnesCpu) {
  other_.rseq_cpu = static_cast<uint32_t>(cpu_) + 1;
  job_.Run();
  EXPECT_FALSE(job_.HeldStill());
  EXPECT_TRUE(job_.NeedsAttention());
}

TEST_F(CopyJobTest, WhoHasTheLockIsCopiedOnce) {
  ThreadCopy* const chosen = job_.threads.front();
  job_.threads.push_back(holders_.holder.copy);
  job_.Run();
  EXPECT_EQ(job_.threads, (std::vector{holders_.holder.copy, chosen}));
}

TEST_F(CopyJobTest, WhoLetGoOfTheLockIsCopiedAlongAndProvedByItself) {
  ThreadCopy* const chosen = job_.threads.front();
  chosen->watch.rseq_cpu_id = job_.witness.rseq_cpu_id;
  chosen_.frame[1] = 0xf00d;
  other_.rseq_cpu = static_cast<uint32_t>(cpu_) + 1;
  const CpuWitness witness = job_.witness;
  do {
    job_.threads = {chosen};
    job_.witness = witness;
    job_.Run();
  } while (job_.descheduled);
  EXPECT_FALSE(job_.HeldStill()) << "who has it runs on another CPU";
  ASSERT_EQ(job_.LetGoHeldStill(), chosen);
  EXPECT_EQ(chosen->frames.at(0).code, 0xf00dU);
  EXPECT_FALSE(job_.HoldsLock(*chosen));
}

TEST_F(CopyJobTest, WhoLetGoOfTheLockAndRunsElsewhereIsNotProved) {
  job_.threads.front()->watch.rseq_cpu_id = job_.witness.rseq_cpu_id;
  chosen_.rseq_cpu = other_.rseq_cpu = static_cast<uint32_t>(cpu_) + 1;
  job_.Run();
  EXPECT_EQ(job_.LetGoHeldStill(), nullptr);
}

TEST_F(CopyJobTest, WithNativeFramesOneThreadIsCopied) {
  job_.native = true;
  EXPECT_EQ(job_.WhomToStop(), 4711);
  EXPECT_EQ(job_.threads, (std::vector{holders_.holder.copy}));
}

TEST_F(CopyJobTest, StaysWithTheChosenOneWhereTheHolderIsNotKnown) {
  chosen_.gil[0] = 0xdead;
  job_.Run();
  EXPECT_EQ(job_.tstate(), OwnThread::AddressOf(chosen_.state));
  EXPECT_TRUE(job_.NeedsAttention());
}

TEST_F(CopyJobTest, StaysWithTheChosenOneWhereNobodyHasTheLock) {
  chosen_.gil[1] = 0;
  RunUndisturbed();
  EXPECT_EQ(job_.tstate(), OwnThread::AddressOf(chosen_.state));
  EXPECT_FALSE(job_.NeedsAttention());
}

TEST_F(CopyJobTest, WhoHasTheLockIsWhomToStop) {
  job_.tid = 1;
  EXPECT_EQ(job_.WhomToStop(), 4711);
  EXPECT_TRUE(job_.stopped);
}

/// Of a process' first thread, as a witness has them.
class TaskFds {
 public:
  explicit TaskFds(pid_t tid)
      : schedstat_(Open(tid, "schedstat")), syscall_(Open(tid, "syscall")) {}
  void Give(CpuWitness& witness) const {
    witness.schedstat_fd = schedstat_.get();
    witness.syscall_fd = syscall_.get();
  }
  TaskWatch Watch() const {
    return {.schedstat_fd = schedstat_.get(), .syscall_fd = syscall_.get()};
  }

 private:
  static int Open(pid_t tid, const char* name) {
    const std::string path = "/proc/" + std::to_string(tid) + "/" + name;
    return open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  ScopedFd schedstat_, syscall_;
};

class CopyJobLookTest : public CopyJobTest {
 protected:
  CopyJobLookTest() {
    chosen_.gil = {OwnThread::AddressOf(chosen_.state), 0, 7, 0, 0, 0};
    const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(5);
    while (!RanBefore(spinning_.pid()) && MonotonicNow() < deadline) usleep(100);
    spinners_.Give(job_.witness);
    job_.awake_before = false;
  }

  static std::optional<SchedStat> StatOf(pid_t pid) {
    const auto text = ReadSmallFile("/proc/" + std::to_string(pid) + "/schedstat");
    return ParseSchedStat(text.value_or(""));
  }
  static bool RanBefore(pid_t pid) {
    const auto stat = StatOf(pid);
    return stat && stat->cpu_ns > 0;
  }
  static bool Sleeps(pid_t pid) {
    return !SaysAwake(
        ReadSmallFile("/proc/" + std::to_string(pid) + "/syscall").value_or("running"));
  }
  static void PauseForEver() {
    for (;;) pause();
  }

  const testing::SpinningChild spinning_;
  const TaskFds spinners_{spinning_.pid()};
  const bool statistics_ = RanBefore(getpid()) && ReadSmallFile("/proc/self/syscall").has_value();
};

TEST_F(CopyJobLookTest, WhoSleptAndWasChargedSinceIsAwake) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  job_.stat_before = SchedStat{};
  RunUndisturbed();
  ASSERT_TRUE(job_.subject_look);
  EXPECT_TRUE(job_.subject_look->awake);
}

TEST_F(CopyJobLookTest, WhoSleptAndWasChargedNothingIsAwakeByOurComing) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  job_.stat_before = SchedStat{.cpu_ns = UINT64_MAX};
  RunUndisturbed();
  ASSERT_TRUE(job_.subject_look);
  EXPECT_FALSE(job_.subject_look->awake);
}

TEST_F(CopyJobLookTest, WhoIsAwakeIsNotCopiedAsleep) { EXPECT_FALSE(job_.RunAsleep()); }

TEST_F(CopyJobLookTest, WhoSleepsIsCopiedWithProof) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  job_.awake_before = true;
  const testing::Child sleeping(PauseForEver);
  const TaskFds sleepers(sleeping.pid());
  sleepers.Give(job_.witness);
  while (!job_.RunAsleep()) std::this_thread::yield();
  EXPECT_TRUE(job_.read_ok);
  EXPECT_FALSE(job_.subject_look->awake);
  EXPECT_EQ(job_.WhomToStop(), 0);
}

// Wherever that is: it came to no CPU between then and the copy.
TEST_F(CopyJobLookTest, WhoSleptAllTheTimeStoodStill) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  const testing::Child sleeping(PauseForEver);
  while (!Sleeps(sleeping.pid())) std::this_thread::yield();
  const TaskFds sleepers(sleeping.pid());
  sleepers.Give(job_.witness);
  chosen_.rseq_cpu = static_cast<uint32_t>(cpu_) + 1;
  job_.stat_before = StatOf(sleeping.pid());
  job_.Run();
  EXPECT_FALSE(job_.HeldStill());
  EXPECT_TRUE(job_.StoodStill());
  ASSERT_TRUE(job_.subject_look);
  EXPECT_TRUE(job_.subject_look->in_pause);
  EXPECT_EQ(job_.subject_look->on_cpu, OnCpu::kNo);

  --job_.stat_before->switches;
  job_.Run();
  EXPECT_FALSE(job_.StoodStill()) << "it was put on one";
  job_.stat_before = StatOf(sleeping.pid());
  job_.awake_before = true;
  job_.Run();
  EXPECT_FALSE(job_.StoodStill()) << "it may have had one all the time";
}

TEST_F(CopyJobLookTest, OthersAreLookedAtAfterTheCopy) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  const testing::Child sleeping(PauseForEver);
  while (!Sleeps(sleeping.pid())) std::this_thread::yield();
  const TaskFds sleepers(sleeping.pid());
  ThreadCopy* const other = holders_.holder.copy;
  job_.threads.push_back(other);
  other->watch = spinners_.Watch();
  job_.Run();
  ASSERT_TRUE(other->look);
  EXPECT_TRUE(other->look->awake);
  other->watch = sleepers.Watch();
  job_.Run();
  ASSERT_TRUE(other->look);
  EXPECT_FALSE(other->look->awake);
  other->watch = {};
  job_.Run();
  EXPECT_FALSE(other->look) << "there is nobody to ask";
}

TEST_F(CopyJobLookTest, WhatHasWokenWhereWeAreHasHadNoCpu) {
  if (!statistics_) GTEST_SKIP() << "the kernel keeps none";
  ThreadCopy* const other = holders_.holder.copy;
  job_.threads.push_back(other);
  other->watch = spinners_.Watch();
  other->watch.rseq_cpu_id = OwnThread::AddressOf(other_.rseq_cpu);
  other->watch.awake_before = false;
  other->watch.stat_before = SchedStat{.cpu_ns = UINT64_MAX};
  job_.Run();
  ASSERT_TRUE(other->look);
  EXPECT_FALSE(other->look->awake);
  other->watch.stat_before = SchedStat{};
  job_.Run();
  EXPECT_TRUE(other->look->awake) << "it was charged since";
  other->watch.stat_before = SchedStat{.cpu_ns = UINT64_MAX};
  other_.rseq_cpu = static_cast<uint32_t>(cpu_) + 1;
  job_.Run();
  EXPECT_TRUE(other->look->awake) << "it is on another CPU";
}

}  // namespace
}  // namespace pystrobe::remote
