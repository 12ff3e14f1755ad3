// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/probe.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "sampler/remote/promptness.h"
#include "tests/cpp/support/own_thread.h"
#include "tests/cpp/support/spinning_child.h"
#include "tests/cpp/support/thread_of_ours.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kPatience = seconds(10);

/// Has no right to real-time priority while it lives. [its thread, and those it starts]
class WithoutPriority {
 public:
  WithoutPriority() {
    syscall(SYS_capget, &header_, before_.data());
    auto without = before_;
    without[0].effective &= ~(1U << CAP_SYS_NICE);
    syscall(SYS_capset, &header_, without.data());
    getrlimit(RLIMIT_RTPRIO, &limit_);
    const rlimit none{0, limit_.rlim_max};
    setrlimit(RLIMIT_RTPRIO, &none);
  }
  ~WithoutPriority() {
    setrlimit(RLIMIT_RTPRIO, &limit_);
    syscall(SYS_capset, &header_, before_.data());
  }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
  rlimit limit_{};
};

enum class Priority { kRealTime, kOrdinary };

class ProbeTest : public ::testing::TestWithParam<Priority> {
 protected:
  ProbeTest() : probe_(Probe::Start(cpu_, pacer_).value()) {}
  ~ProbeTest() override {
    probe_->Withdraw(Nanoseconds::zero(), Probe::kMostJobs);
    EXPECT_TRUE(probe_->Wait(kPatience));
  }

  CopyJob& NewJob() { return copies_.emplace_back(thread_, cpu_).job; }

  // Whether a sleeper is woken before `until`.
  bool RaisedBefore(Nanoseconds until) {
    pacer_.Sleep(until);
    return MonotonicNow() < until;
  }

  static cpu_set_t AllowedNow() {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  }

  // That this thread may use, and the probe is not on; -1 when there is none.
  int AnotherCpu() const {
    const cpu_set_t allowed = AllowedNow();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (cpu != cpu_ && CPU_ISSET(cpu, &allowed)) return cpu;
    }
    return -1;
  }

  std::optional<WithoutPriority> without_ =
      GetParam() == Priority::kOrdinary ? std::make_optional<WithoutPriority>() : std::nullopt;
  int cpu_ = sched_getcpu();
  Pacer pacer_;
  OwnThread thread_;
  std::deque<OwnCopy> copies_;
  std::unique_ptr<Probe> probe_;
};

TEST_P(ProbeTest, RunsAJobOnItsCpu) {
  CopyJob& job = NewJob();
  probe_->Submit(job, {});
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_FALSE(probe_->busy());
  EXPECT_TRUE(job.read_ok);
  EXPECT_EQ(job.own_cpu, cpu_);
  EXPECT_EQ(job.threads.front()->frames.size(), 1U);
  EXPECT_EQ(job.subject_cpu, cpu_);
}

TEST_P(ProbeTest, WakesForAJobThatWentWrongOnly) {
  CopyJob& good = NewJob();
  do {  // until one is not disturbed by others
    probe_->Submit(good, {});
    ASSERT_TRUE(probe_->Wait(kPatience));
  } while (!good.HeldStill());
  EXPECT_FALSE(good.NeedsAttention());
  RaisedBefore(MonotonicNow());  // what the disturbed ones raised
  probe_->Submit(good, {});
  ASSERT_TRUE(probe_->Wait(kPatience));
  const bool raised = RaisedBefore(MonotonicNow() + milliseconds(20));
  EXPECT_EQ(raised, good.NeedsAttention());

  thread_.state[0] = 8;  // no frame is there
  probe_->Submit(NewJob(), {});
  EXPECT_TRUE(RaisedBefore(MonotonicNow() + kPatience));
}

TEST_P(ProbeTest, RunsJobsAtTheirTimesInTheirOrder) {
  const Nanoseconds start = MonotonicNow();
  for (int i = 1; i <= 8; ++i) {
    ASSERT_TRUE(probe_->Submit(NewJob(), start + i * milliseconds(2)));
  }
  ASSERT_TRUE(probe_->Wait(kPatience));
  Nanoseconds before = start;
  for (int i = 1; i <= 8; ++i) {
    const CopyJob& job = copies_[static_cast<size_t>(i - 1)].job;
    EXPECT_GE(job.began, start + i * milliseconds(2)) << i;
    EXPECT_GT(job.began, before) << i;
    before = job.began;
  }
}

TEST_P(ProbeTest, AJobAtOnceComesBeforeThoseAhead) {
  CopyJob &at_once = NewJob(), &ahead = NewJob();
  const Nanoseconds at = MonotonicNow() + milliseconds(30);
  probe_->Submit(at_once, {});
  ASSERT_TRUE(probe_->Submit(ahead, at));
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_LT(at_once.began, ahead.began);
  EXPECT_GE(ahead.began, at);
}

TEST_P(ProbeTest, WhatIsWithdrawnDoesNotRun) {
  const Nanoseconds start = MonotonicNow();
  ASSERT_TRUE(probe_->Submit(NewJob(), start));
  ASSERT_TRUE(probe_->Submit(NewJob(), start + kPatience));
  ASSERT_TRUE(probe_->Submit(NewJob(), start + 2 * kPatience));
  EXPECT_EQ(probe_->Withdraw(start, 1), 1U) << "no more than that";
  EXPECT_EQ(probe_->Withdraw(start, 9), 1U);
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_GE(copies_[0].job.began, start);
  EXPECT_EQ(copies_[1].job.began, Nanoseconds::zero());
  EXPECT_EQ(copies_[2].job.began, Nanoseconds::zero());
}

// What was to wake for it may wake all the same.
TEST_P(ProbeTest, NoJobRunsOnTheTimeOfAWithdrawnOne) {
  for (int i = 0; i < 300; ++i) {
    CopyJob& late = NewJob();
    Nanoseconds at = MonotonicNow() + std::chrono::microseconds(20 + i % 40);
    ASSERT_TRUE(probe_->Submit(NewJob(), at));
    while (MonotonicNow() < at - std::chrono::microseconds(i % 10)) {
    }
    probe_->Withdraw(Nanoseconds::zero(), Probe::kMostJobs);
    at = MonotonicNow() + milliseconds(1);
    ASSERT_TRUE(probe_->Submit(late, at));
    ASSERT_TRUE(probe_->Wait(kPatience));
    ASSERT_GE(late.began, at) << i;
  }
}

TEST_P(ProbeTest, WhatIsWithdrawnAndSubmittedAgainIsOnTime) {
  constexpr int kJobs = 3;
  Nanoseconds least_late[kJobs];
  std::fill_n(least_late, kJobs, kPatience);
  for (int round = 0; round < 10; ++round) {
    CopyJob* const jobs[kJobs] = {&NewJob(), &NewJob(), &NewJob()};
    const Nanoseconds start = MonotonicNow();
    const auto at = [&](int i) { return start + milliseconds(20 + 3 * i); };
    const auto submit = [&] {
      for (int i = 0; i < kJobs; ++i) EXPECT_TRUE(probe_->Submit(*jobs[i], at(i)));
    };
    submit();
    probe_->Remind();
    std::this_thread::sleep_for(milliseconds(2));  // it sleeps
    EXPECT_EQ(probe_->Withdraw(Nanoseconds::zero(), kJobs), kJobs);
    submit();
    ASSERT_TRUE(probe_->Wait(kPatience));
    for (int i = 0; i < kJobs; ++i) {
      least_late[i] = std::min(least_late[i], jobs[i]->began - at(i));
    }
  }
  for (const Nanoseconds late : least_late) {
    EXPECT_LT(late, std::chrono::microseconds(500)) << "once in ten the machine may not delay it";
  }
}

TEST_P(ProbeTest, CopiesBesideItAtTheTimeThatWasAskedFor) {
  const ScopedPromptness restores_affinity;
  const int elsewhere = AnotherCpu();
  if (elsewhere < 0) GTEST_SKIP() << "one CPU only";
  ASSERT_TRUE(PinTo(0, elsewhere));
  CopyJob& job = NewJob();
  Nanoseconds at{};
  bool done = false;
  for (const Nanoseconds end = MonotonicNow() + kPatience; !done && MonotonicNow() < end;) {
    at = MonotonicNow() + milliseconds(2);
    done = probe_->RunBeside(job, at);
  }
  ASSERT_TRUE(done);
  EXPECT_GE(job.began, at);
  EXPECT_EQ(job.own_cpu, cpu_);
  EXPECT_GT(job.took, Nanoseconds{});
}

TEST_P(ProbeTest, HasRoomForSoMany) {
  const Nanoseconds at = MonotonicNow() + kPatience;
  for (uint32_t i = 0; i < Probe::kMostJobs; ++i) ASSERT_TRUE(probe_->Submit(NewJob(), at));
  EXPECT_FALSE(probe_->Submit(NewJob(), at));
  EXPECT_EQ(probe_->Withdraw(Nanoseconds::zero(), Probe::kMostJobs), Probe::kMostJobs);
  EXPECT_FALSE(probe_->busy());
}

TEST_P(ProbeTest, IsNotWokenForWhatItExpects) {
  CopyJob &first = NewJob(), &expected = NewJob(), &unexpected = NewJob();
  std::this_thread::sleep_for(milliseconds(5));  // it is asleep then
  const Nanoseconds at = MonotonicNow() + milliseconds(500);
  probe_->Expect(at, TimedSleep::kNever);
  probe_->Submit(first, {});
  EXPECT_TRUE(first.woken_for);
  ASSERT_TRUE(probe_->Wait(kPatience));
  std::this_thread::sleep_for(milliseconds(5));
  probe_->Submit(expected, at);
  EXPECT_FALSE(expected.woken_for);
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_GE(expected.began, at);
  std::this_thread::sleep_for(milliseconds(5));
  probe_->Submit(unexpected, MonotonicNow() + milliseconds(5));
  EXPECT_TRUE(unexpected.woken_for);
  ASSERT_TRUE(probe_->Wait(kPatience));
}

TEST_P(ProbeTest, IsNotWokenForWhatFollowsThatEither) {
  CopyJob &first = NewJob(), &expected = NewJob(), &following = NewJob();
  std::this_thread::sleep_for(milliseconds(5));  // it is asleep then
  const Nanoseconds at = MonotonicNow() + milliseconds(200), then = at + milliseconds(200);
  probe_->Expect(at, then);
  probe_->Submit(first, {});
  EXPECT_TRUE(first.woken_for);
  ASSERT_TRUE(probe_->Wait(kPatience));
  for (CopyJob* job : {&expected, &following}) {
    const Nanoseconds when = job == &expected ? at : then;
    std::this_thread::sleep_for(milliseconds(5));
    probe_->Submit(*job, when);
    EXPECT_FALSE(job->woken_for);
    ASSERT_TRUE(probe_->Wait(kPatience));
    EXPECT_GE(job->began, when);
  }
}

// So that the CPU's clock need not be set as one of them goes to sleep.
TEST_P(ProbeTest, ItsThreadsTakeTurns) {
  const auto threads = testing::ThreadsOfOurs("probe");
  ASSERT_GE(threads.size(), 2U);
  if (!IsRealTime(threads[0])) GTEST_SKIP() << "the threads help each other instead";
  const auto cpu_of = [&](size_t i) {
    const auto stat = ReadSmallFile(fmt::format("/proc/self/task/{}/schedstat", threads.at(i)));
    return std::stoull(stat.value());
  };
  std::this_thread::sleep_for(milliseconds(5));  // both are asleep then
  const Nanoseconds at = MonotonicNow() + milliseconds(100);
  probe_->Expect(at, at + milliseconds(1));
  probe_->Submit(NewJob(), {});  // one of them is woken for it
  ASSERT_TRUE(probe_->Wait(kPatience));
  std::this_thread::sleep_for(milliseconds(5));
  const std::array before{cpu_of(0), cpu_of(1)};
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(probe_->Submit(NewJob(), at + i * milliseconds(1)));
  ASSERT_TRUE(probe_->Wait(kPatience));
  const std::array used{cpu_of(0) - before[0], cpu_of(1) - before[1]};
  EXPECT_GT(4 * std::min(used[0], used[1]), std::max(used[0], used[1]));
}

TEST_P(ProbeTest, IsNotAwakeForEverForWhatDoesNotCome) {
  Nanoseconds next = MonotonicNow();
  const auto expect_in_vain = [&] {
    for (uint32_t i = 0; i <= TimedSleep::kMostInVain; ++i) {
      // Said while it sleeps until the one before.
      probe_->Expect(next + milliseconds(7), next + milliseconds(12));
      std::this_thread::sleep_until(std::chrono::steady_clock::time_point(next + milliseconds(2)));
      next += milliseconds(5);
    }
    std::this_thread::sleep_for(milliseconds(10));
    return probe_->Cpu();
  };
  const Nanoseconds before = probe_->Cpu();
  probe_->Submit(NewJob(), next + milliseconds(1));
  const Nanoseconds awake = expect_in_vain();
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_GT(awake, before);
  EXPECT_EQ(expect_in_vain(), awake);
}

// Else it may wait behind the target for milliseconds, just when it is needed.
TEST_P(ProbeTest, MovesThePacerAwayFromWhereTheTargetWent) {
  const ScopedPromptness restores_affinity;
  const int target_cpu = AnotherCpu();
  if (target_cpu < 0) GTEST_SKIP() << "one CPU only";
  CopyJob& job = NewJob();
  thread_.rseq_cpu = static_cast<uint32_t>(target_cpu);
  probe_->Submit(job, {});
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_TRUE(RaisedBefore(MonotonicNow() + kPatience));
  cpu_set_t left = AllowedNow();
  EXPECT_FALSE(CPU_ISSET(target_cpu, &left));
  EXPECT_EQ(CPU_COUNT(&left), CPU_COUNT(&pacer_.allowed()) - 1);
  EXPECT_NE(sched_getcpu(), target_cpu);
}

// By taskset, say: what it is asked to do next is its own CPU's again.
TEST_P(ProbeTest, GoesBackWhereItWasMoved) {
  const int elsewhere = AnotherCpu();
  if (elsewhere < 0) GTEST_SKIP() << "one CPU only";
  const auto threads = testing::ThreadsOfOurs("probe");
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(PinTo(threads.at(i), elsewhere));
  CopyJob &moved = NewJob(), &next = NewJob();
  probe_->Submit(moved, {});
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_EQ(moved.own_cpu, elsewhere);
  EXPECT_FALSE(moved.HeldStill());
  probe_->Submit(next, {});
  ASSERT_TRUE(probe_->Wait(kPatience));
  EXPECT_EQ(next.own_cpu, cpu_);
}

INSTANTIATE_TEST_SUITE_P(Of, ProbeTest, ::testing::Values(Priority::kRealTime, Priority::kOrdinary),
                         [](const auto& info) {
                           return info.param == Priority::kRealTime ? "RealTime" : "Ordinary";
                         });

TEST(Probe, DoesNotStartWhereItMayNotRun) {
  Pacer pacer;
  auto probe = Probe::Start(CPU_SETSIZE - 1, pacer);
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().code, ErrorCode::kInvalidArgument);
}

constexpr int kBatches = 100, kLooksOfBatch = 20;

// How many of 2,000 looks come when the time slice of who has the CPU ends, or later.
int CountLate(Probe& probe, OwnThread& thread) {
  int late = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::deque<OwnCopy> copies;
    const Nanoseconds start = MonotonicNow() + milliseconds(2);
    const auto due = [start](size_t i) { return start + i * std::chrono::microseconds(1'370); };
    for (size_t i = 0; i < kLooksOfBatch; ++i) {
      probe.Submit(copies.emplace_back(thread, probe.cpu()).job, due(i));
    }
    EXPECT_TRUE(probe.Wait(kPatience));
    for (size_t i = 0; i < copies.size(); ++i) {
      late += copies[i].job.began > due(i) + std::chrono::microseconds(400) ? 1 : 0;
    }
  }
  return late;
}

/// For how long a process has waited for a CPU, in ns.
double RunDelay(pid_t pid) {
  const auto text = ReadSmallFile(fmt::format("/proc/{}/schedstat", pid));
  return static_cast<double>(ParseSchedStat(text.value()).value().run_delay_ns);
}

// Such looks are drawn to what makes the kernel see that a slice is over, as it does when a thread
// reads its CPU time. A machine that is busy makes looks late, too, now and then.
TEST(UnprivilegedProbe, DoesNotWaitForTheEndOfATimeSlice) {
  const testing::SpinningChild target([] {
    timespec used{};
    for (;;) {
      const Nanoseconds until = MonotonicNow() + std::chrono::microseconds(1'030);
      while (MonotonicNow() < until) {
      }
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    }
  });
  if (!WaitsForSlices()) GTEST_SKIP() << "not by this kernel";
  Pacer pacer;
  const int cpu = sched_getcpu();
  ASSERT_TRUE(PinTo(target.pid(), cpu));
  const auto prompt = Probe::Start(cpu, pacer);
  ASSERT_TRUE(prompt.has_value());
  const WithoutPriority without;
  const auto probe = Probe::Start(cpu, pacer);
  ASSERT_TRUE(probe.has_value());
  OwnThread thread;
  constexpr int kFew = 12;  // it would be 20 to 50
  constexpr double kMuch = 0.2;
  int fewest = INT_MAX;
  for (int attempt = 0; attempt < 3 && fewest > kFew; ++attempt) {
    const double waited = RunDelay(target.pid());
    const Nanoseconds start = MonotonicNow();
    const int of_the_machine = CountLate(**prompt, thread);
    fewest = std::min(fewest, CountLate(**probe, thread) - of_the_machine);
    const auto elapsed = static_cast<double>((MonotonicNow() - start).count());
    if (RunDelay(target.pid()) - waited > kMuch * elapsed) {
      GTEST_SKIP() << "another program wants this CPU, too";
    }
  }
  EXPECT_LE(fewest, kFew);
}

/// How often a process had its CPU taken away.
int64_t Preemptions(pid_t pid) {
  constexpr std::string_view kField = "nonvoluntary_ctxt_switches:";
  const std::string text = ReadSmallFile(fmt::format("/proc/{}/status", pid)).value();
  return std::stoll(text.substr(text.find(kField) + kField.size()));
}

// The thread that is to help is put off when it need not.
TEST(UnprivilegedProbe, TakesTheCpuOnceForALook) {
  if (!WaitsForSlices()) GTEST_SKIP() << "not by this kernel";
  const testing::SpinningChild target;
  Pacer pacer;
  const int cpu = sched_getcpu();
  ASSERT_TRUE(PinTo(target.pid(), cpu));
  const WithoutPriority without;
  const auto probe = Probe::Start(cpu, pacer);
  ASSERT_TRUE(probe.has_value());
  OwnThread thread;
  constexpr double kLooks = kBatches * kLooksOfBatch;
  double fewest = 2 * kLooks;
  for (int attempt = 0; attempt < 3 && fewest > 1.3 * kLooks; ++attempt) {
    const int64_t before = Preemptions(target.pid());
    CountLate(**probe, thread);
    fewest = std::min(fewest, static_cast<double>(Preemptions(target.pid()) - before));
  }
  EXPECT_GT(fewest, 0.5 * kLooks);
  EXPECT_LT(fewest, 1.5 * kLooks) << "it would be twice";
}

}  // namespace
}  // namespace pystrobe::remote
