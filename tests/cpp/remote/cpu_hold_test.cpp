// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/cpu_hold.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <thread>

#include "profiler/base/thread.h"
#include "sampler/remote/promptness.h"
#include "sampler/remote/wake.h"

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
    const SignalsBlocked blocked;  // what SleepUntilWoken needs
    holder_ = std::thread([this] {
      const ScopedPromptness prompt(Urgency::kAtOnce);
      std::ignore = PinTo(0, holders_cpu_);
      tid_ = gettid();  // from here on the test may move it
      // Woken first: what it serves is what the test has set by then.
      for (Sleep(); !stop_; Sleep()) {
        hold_.Serve(serves_cpu_ < 0 ? holders_cpu_ : serves_cpu_.load());
      }
    });
    while (tid_ == 0) std::this_thread::yield();
  }
  void TearDown() override {
    if (holder_.joinable()) StopHolder();
  }
  void StopHolder() {
    stop_ = true;
    WakeThread(tid_);
    holder_.join();
  }

  static void Sleep() { SleepUntilWoken(Nanoseconds::max()); }
  // What End says; nullopt where Await says no.
  std::optional<bool> Hold(const std::function<void()>& work) {
    hold_.Ask({});
    if (tid_ != 0) WakeThread(tid_);
    if (!hold_.Await()) return std::nullopt;
    work();
    return hold_.End();
  }
  // Other programs, and a host that is late to wake a CPU, may disturb one time or another.
  bool InTheEnd(const std::function<bool()>& comes_true) {
    for (const Nanoseconds deadline = MonotonicNow() + seconds(10); MonotonicNow() < deadline;) {
      if (comes_true()) return true;
    }
    return false;
  }
  bool KeptInTheEnd(const std::function<void()>& work) {
    return InTheEnd([&] { return Hold(work) == true; });
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
  // Not where a host takes the holder's CPU away meanwhile: then it had it all the time it knows.
  EXPECT_TRUE(InTheEnd([this] {
    return Hold([] { std::this_thread::sleep_for(2 * CpuHold::kLongest); }) == false;
  }));
  EXPECT_TRUE(KeptInTheEnd([] {})) << "and can be had again";
}

TEST_F(CpuHoldTest, IsLostWhereTheHolderIsMoved) {
  int lost = 0;
  EXPECT_TRUE(InTheEnd([&] {
    const auto kept = Hold([this] { EXPECT_TRUE(PinTo(tid_, own_cpu_)); });
    EXPECT_NE(kept, true);
    if (kept == false) ++lost;
    EXPECT_TRUE(PinTo(tid_, holders_cpu_));
    return lost == 20;
  }));
  EXPECT_TRUE(KeptInTheEnd([] {}));
}

// Under ThreadSanitizer an operation on an atomic takes a lock: who loses its CPU within one is
// waited for by who comes next.
#ifdef __SANITIZE_THREAD__
constexpr bool kAtomicsTakeLocks = true;
#else
constexpr bool kAtomicsTakeLocks = false;
#endif

// Has a CPU to itself, by real-time priority, from Go until it is released. Gives up where nobody
// releases it.
class Hog {
 public:
  explicit Hog(int cpu) : thread_([this, cpu] { Run(cpu); }) { may_.wait(kUnknown); }
  ~Hog() {
    if (thread_.joinable()) Release();
  }
  // False: this process may not make a thread real-time.
  bool may() const { return may_ == kYes; }
  void Go() {
    goes_ = true;
    goes_.notify_one();
    while (!runs_) std::this_thread::yield();
  }
  // Whether it had not given up before.
  bool Release() {
    released_ = goes_ = true;
    goes_.notify_one();
    thread_.join();
    return !gave_up_;
  }

 private:
  enum Answer { kUnknown, kNo, kYes };
  // Less than real-time throttling lets it have at a time.
  static constexpr Nanoseconds kLimit = std::chrono::milliseconds(400);

  void Run(int cpu) {
    const sched_param high{.sched_priority = 50};
    may_ = PinTo(0, cpu) && sched_setscheduler(0, SCHED_FIFO, &high) == 0 ? kYes : kNo;
    may_.notify_one();
    goes_.wait(false);
    runs_ = true;
    const Nanoseconds end = MonotonicNow() + kLimit;
    while (may() && !released_ && !gave_up_) gave_up_ = MonotonicNow() >= end;
  }

  std::atomic<Answer> may_{kUnknown};
  std::atomic<bool> goes_{false}, runs_{false}, released_{false}, gave_up_{false};
  std::thread thread_;
};

// A program of higher priority has the holder's CPU, for as long as it likes.
TEST_F(CpuHoldTest, IsNotWaitedForWithoutEnd) {
  if (!Hog(holders_cpu_).may()) GTEST_SKIP() << "may not make a thread real-time";
  bool was_waited_for = false;
  EXPECT_TRUE(InTheEnd([&] {
    Hog hog(holders_cpu_);
    hold_.Ask({});
    WakeThread(tid_);
    if (!hold_.Await()) return false;
    hog.Go();
    EXPECT_FALSE(hold_.End());
    was_waited_for = !hog.Release();
    return !was_waited_for || !kAtomicsTakeLocks;
  }));
  EXPECT_FALSE(was_waited_for) << "it had the CPU all the while";
  EXPECT_TRUE(KeptInTheEnd([] {})) << "and it can be had again";
}

TEST_F(CpuHoldTest, TellsHowLongItLasted) {
  EXPECT_TRUE(InTheEnd([this] {
    Hold([] { std::this_thread::sleep_for(2 * CpuHold::kLongest); });
    return hold_.TakeStay() >= CpuHold::kLongest;
  })) << "though it was lost";
  ASSERT_TRUE(KeptInTheEnd([] {}));
  EXPECT_GT(hold_.TakeStay(), Nanoseconds{});
  EXPECT_EQ(hold_.TakeStay(), Nanoseconds{});
}

TEST_F(CpuHoldTest, IsWaitedForAsleepWhereItIsNotWantedYet) {
  const Nanoseconds at = MonotonicNow() + std::chrono::milliseconds(50);
  const Nanoseconds cpu_before = ThreadCpuNow();
  hold_.Ask(at);
  EXPECT_EQ(hold_.due(), at);
  EXPECT_TRUE(hold_.SleepUntilSoon());
  EXPECT_FALSE(hold_.Await()) << "nobody has woken the holder";
  EXPECT_GE(MonotonicNow(), at + CpuHold::kPatience);
  EXPECT_LT(ThreadCpuNow() - cpu_before, std::chrono::milliseconds(25));
  EXPECT_EQ(hold_.due(), Nanoseconds::max());
  EXPECT_FALSE(hold_.SleepUntilSoon());
}

TEST_F(CpuHoldTest, IsNotHadWhereTheHolderIsElsewhere) {
  serves_cpu_ = own_cpu_;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Hold([] {}), std::nullopt);
}

TEST_F(CpuHoldTest, WhoComesTooLateDoesNotHold) {
  StopHolder();
  tid_ = 0;
  const Nanoseconds start = MonotonicNow();
  EXPECT_EQ(Hold([] {}), std::nullopt);
  EXPECT_GE(MonotonicNow() - start, CpuHold::kPatience);
  hold_.Serve(sched_getcpu());  // returns at once, or this test never ends
}

}  // namespace
}  // namespace pystrobe::remote
