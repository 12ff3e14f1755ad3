// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_hold.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <thread>

#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

using std::chrono::seconds;

// Two CPUs that this process may use: of the asking thread and of the holder.
class CpuHoldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      (own_cpu_ < 0 ? own_cpu_ : holders_cpu_) = cpu;
    }
    if (holders_cpu_ < 0) GTEST_SKIP() << "one CPU only";
    ASSERT_TRUE(PinTo(0, own_cpu_));
    holder_ = std::thread([this] {
      const ScopedPromptness prompt(Urgency::kAtOnce);
      tid_ = gettid();
      std::ignore = PinTo(0, holders_cpu_);
      while (!stop_) hold_.Serve(serves_cpu_ < 0 ? holders_cpu_ : serves_cpu_.load());
    });
    while (tid_ == 0) std::this_thread::yield();
  }
  void TearDown() override {
    stop_ = true;
    if (holder_.joinable()) holder_.join();
  }

  // What End says; nullopt where Await says no.
  std::optional<bool> Hold(const std::function<void()>& work) {
    hold_.Ask();
    if (!hold_.Await()) return std::nullopt;
    work();
    return hold_.End();
  }
  // Other programs may disturb one time or another.
  bool KeptInTheEnd(const std::function<void()>& work) {
    for (const Nanoseconds deadline = MonotonicNow() + seconds(10); MonotonicNow() < deadline;) {
      if (Hold(work) == true) return true;
    }
    return false;
  }

  ScopedPromptness restores_affinity_;
  CpuHold hold_;
  int own_cpu_ = -1, holders_cpu_ = -1;
  std::atomic<int> serves_cpu_{-1};
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> stop_{false};
  std::thread holder_;
};

TEST_F(CpuHoldTest, IsKeptUntilItsEnd) {
  EXPECT_TRUE(KeptInTheEnd([] {}));
  EXPECT_TRUE(KeptInTheEnd([] {})) << "more than once";
}

TEST_F(CpuHoldTest, EndsByItselfWhereItLastsTooLong) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(Hold([] { std::this_thread::sleep_for(2 * CpuHold::kLongest); }), true);
  }
  EXPECT_TRUE(KeptInTheEnd([] {})) << "and can be had again";
}

TEST_F(CpuHoldTest, IsLostWhereTheHolderIsMoved) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(Hold([this] { ASSERT_TRUE(PinTo(tid_, own_cpu_)); }), true);
    ASSERT_TRUE(PinTo(tid_, holders_cpu_));
  }
  EXPECT_TRUE(KeptInTheEnd([] {}));
}

TEST_F(CpuHoldTest, IsNotHadWhereTheHolderIsElsewhere) {
  serves_cpu_ = own_cpu_;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Hold([] {}), std::nullopt);
}

TEST_F(CpuHoldTest, WhoComesTooLateDoesNotHold) {
  stop_ = true;
  holder_.join();
  const Nanoseconds start = MonotonicNow();
  EXPECT_EQ(Hold([] {}), std::nullopt);
  EXPECT_GE(MonotonicNow() - start, CpuHold::kPatience);
  hold_.Serve(sched_getcpu());  // returns at once, or this test never ends
}

}  // namespace
}  // namespace pystrobe::remote
