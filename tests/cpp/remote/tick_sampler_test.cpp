// SPDX-License-Identifier: Apache-2.0
//
// With a real interpreter that keeps its lock.
#include "sampler/remote/tick_sampler.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <optional>
#include <thread>

#include "sampler/remote/promptness.h"
#include "tests/cpp/support/python_target.h"
#include "tests/cpp/support/spinning_child.h"

namespace pystrobe::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kBusy =
    "print('up', flush=True)\n"
    "while True: pass\n";
constexpr Nanoseconds kPatience = seconds(20);
constexpr Nanoseconds kPeriod = microseconds(500);

/// Has its CPU for itself, probes included.
class Hog : public testing::SpinningChild {
 public:
  explicit Hog(int cpu) {
    const sched_param above_probes{.sched_priority = 50};
    EXPECT_TRUE(PinTo(pid(), cpu));
    allowed_ = sched_setscheduler(pid(), SCHED_FIFO, &above_probes) == 0;
  }
  bool allowed() const { return allowed_; }

 private:
  bool allowed_ = false;
};

class TickSamplerTest : public SampledPython {
 protected:
  TickSamplerTest() : SampledPython(kBusy, "up") {}

  void SetUp() override {
    SampledPython::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(threads_->threads().size(), 1U);
    pauser_.emplace(PauseMode::kPreempt);
    ticks_.emplace(*context_, *threads_, *pauser_);
  }

  void LookOnce() {
    Next(MonotonicNow());
    ticks_->Start(tick_);
    ticks_->Finish();
  }

  static bool HasOneCpu() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    return CPU_COUNT(&allowed) == 1;
  }

  /// Begins looks until one may be followed by `wanted` ahead, and begins these, `period` apart.
  bool StartAhead(size_t wanted, Nanoseconds period) {
    const Nanoseconds deadline = MonotonicNow() + kPatience;
    while (MonotonicNow() < deadline) {
      Next(MonotonicNow());
      ticks_->Start(tick_);
      size_t begun = 0;
      while (begun < wanted && ticks_->StartAhead(MonotonicNow() + kPeriod + begun * period)) {
        ++begun;
      }
      if (begun == wanted) return true;
      if (ticks_->EndAhead() == 0) {
        ticks_->Finish();
      } else {
        ticks_->FinishMade(0, tick_);
      }
    }
    return false;
  }

  ScopedPromptness prompt_;
  std::optional<Pauser> pauser_;
  std::optional<TickSampler> ticks_;
};

TEST_F(TickSamplerTest, TheFirstLookIsFollowedByNone) {
  Next(MonotonicNow());
  ticks_->Start(tick_);
  EXPECT_TRUE(ticks_->started());
  EXPECT_FALSE(ticks_->StartAhead(MonotonicNow() + seconds(1)));
  EXPECT_EQ(ticks_->EndAhead(), 0U);
  EXPECT_TRUE(ticks_->Finish().taken);
  EXPECT_FALSE(ticks_->started());
}

TEST_F(TickSamplerTest, EachTimeThatTheTargetWasHeldIsKept) {
  const Nanoseconds begin = MonotonicNow();
  size_t held = 0;
  for (int i = 0; i < 20; ++i) {
    LookOnce();
    // Looks at a thread that has not run since the last one hold nobody.
    ASSERT_LE(ticks_->held_each().count(), ++held);
    held = ticks_->held_each().count();
    usleep(2000);
  }
  EXPECT_GT(held, 0U);
  EXPECT_GT(ticks_->held_each().Quantile(0), 0U);
  const auto mean_ns = static_cast<uint64_t>((MonotonicNow() - begin).count()) / held;
  EXPECT_LT(ticks_->held_each().Median(), mean_ns);
}

TEST_F(TickSamplerTest, WhatIsNotDueIsNotMade) {
  if (HasOneCpu()) GTEST_SKIP() << "one CPU only: no looks ahead";
  ASSERT_TRUE(StartAhead(3, seconds(100)));
  // The first is due in half a millisecond, and may be made.
  EXPECT_LE(ticks_->EndAhead(), 1U);
}

TEST_F(TickSamplerTest, LooksMadeAheadAreSamplesOfTheirOwnTime) {
  if (HasOneCpu()) GTEST_SKIP() << "one CPU only: no looks ahead";
  // A copy that others disturb is not good: another time.
  for (const Nanoseconds deadline = MonotonicNow() + kPatience; MonotonicNow() < deadline;) {
    ASSERT_TRUE(StartAhead(4, kPeriod));
    pauser_->Sleep(MonotonicNow() + 10 * kPeriod);
    const size_t made = ticks_->EndAhead();
    bool good = made == 4;
    for (size_t i = 0; i <= made; ++i) good &= ticks_->IsGood(i);
    samples_.clear();
    for (size_t i = 0; i <= made; ++i) {
      if (i > 0) Next(ticks_->TimeOf(i));
      if (ticks_->IsGood(i)) ticks_->FinishMade(i, tick_);
    }
    if (!good) continue;
    LookOnce();  // a sample is yielded with the one after it
    threads_->FlushAll();
    ASSERT_GE(samples_.size(), 5U);
    for (size_t i = 1; i < samples_.size(); ++i) {
      EXPECT_GT(samples_[i].time_ns, samples_[i - 1].time_ns);
      EXPECT_EQ(samples_[i].flags & (kSampleMarked | kSampleIncomplete), 0);
    }
    return;
  }
  FAIL() << "never undisturbed";
}

TEST_F(TickSamplerTest, ALookIsOfTheTimeAtWhichItsCpuWasGivenToUs) {
  if (HasOneCpu()) GTEST_SKIP() << "one CPU only: the pacer has it";
  const int cpu = sched_getcpu();
  ASSERT_TRUE(PinTo(program_.pid(), cpu));
  for (int i = 0; i < 3; ++i) LookOnce();  // the probe is there, and the pacer not in its way
  // One that has not run since would need no look.
  const auto cpu_before = ProcessCpuOf(program_.pid());
  while (ProcessCpuOf(program_.pid()) == cpu_before) usleep(1000);
  Hog hog(cpu);
  if (!hog.allowed()) GTEST_SKIP() << "may not make a thread real-time";
  Next(MonotonicNow());
  tick_.due_by = tick_.time + milliseconds(1);
  const std::jthread ends_it([&hog, this] {
    while (MonotonicNow() < tick_.time + milliseconds(30)) usleep(1000);
    kill(hog.pid(), SIGKILL);
  });
  ticks_->Start(tick_);
  const TickOutcome outcome = ticks_->Finish();
  EXPECT_GT(outcome.time, tick_.time + milliseconds(29));
  threads_->FlushAll();
  ASSERT_FALSE(samples_.empty());
  EXPECT_EQ(Nanoseconds(samples_.back().time_ns), outcome.time - context_->start);
  EXPECT_NE(samples_.back().flags & kSampleLate, 0);
}

TEST_F(TickSamplerTest, AnEndInTheMiddleLeavesNothingBehind) {
  if (HasOneCpu()) GTEST_SKIP() << "one CPU only: no looks ahead";
  ASSERT_TRUE(StartAhead(4, seconds(1)));
  ticks_.reset();
  EXPECT_FALSE(pauser_->Busy(threads_->threads().front()->last_cpu()));
}

}  // namespace
}  // namespace pystrobe::remote
