// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/timed_sleep.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "profiler/base/thread.h"

namespace pystrobe::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class With { kTimer, kNone };

/// A thread that sleeps once until `until`.
class Sleeper {
 public:
  Sleeper(With with, Nanoseconds until)
      : thread_(StartThread("a test", [this, with, until] { Main(with, until); }).value()) {
    while (sleep_.wakes_at() == Nanoseconds::zero() && !has_woken()) usleep(100);
    usleep(1000);  // by then it does
  }
  ~Sleeper() {
    if (!has_woken()) sleep_.Wake();
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  TimedSleep& sleep() { return sleep_; }
  bool has_woken() const { return woken_at_.load() != Nanoseconds::zero(); }
  /// When it woke; at most ten seconds from now.
  Nanoseconds WokenAt() const {
    const Nanoseconds deadline = MonotonicNow() + seconds(10);
    while (!has_woken() && MonotonicNow() < deadline) usleep(100);
    EXPECT_TRUE(has_woken());
    return woken_at_.load();
  }
  bool was_woken() const { return was_woken_.load(); }

 private:
  void Main(With with, Nanoseconds until) {
    sleep_.Begin(gettid());
    if (with == With::kTimer) sleep_.UseTimer();
    sleep_.Set(until);
    was_woken_.store(sleep_.Sleep([] { return false; }));
    woken_at_.store(MonotonicNow());
  }

  TimedSleep sleep_;
  std::atomic<Nanoseconds> woken_at_{Nanoseconds::zero()};
  std::atomic<bool> was_woken_{false};
  std::thread thread_;
};

class TimedSleepTest : public ::testing::TestWithParam<With> {};

INSTANTIATE_TEST_SUITE_P(With, TimedSleepTest, ::testing::Values(With::kTimer, With::kNone),
                         [](const auto& info) {
                           return info.param == With::kTimer ? "ATimer" : "None";
                         });

TEST_P(TimedSleepTest, EndsAtItsTime) {
  const Nanoseconds until = MonotonicNow() + milliseconds(30);
  const Sleeper sleeper(GetParam(), until);
  EXPECT_GE(sleeper.WokenAt(), until);
  EXPECT_FALSE(sleeper.was_woken());
}

TEST_P(TimedSleepTest, EndsWhenItIsWoken) {
  Sleeper sleeper(GetParam(), TimedSleep::kNever);
  EXPECT_FALSE(sleeper.has_woken());
  sleeper.sleep().Wake();
  sleeper.WokenAt();
  EXPECT_TRUE(sleeper.was_woken());
}

TEST_P(TimedSleepTest, DoesNotBeginWhereThereIsNews) {
  TimedSleep sleep;
  if (GetParam() == With::kTimer) sleep.UseTimer();
  sleep.Set(TimedSleep::kNever);
  EXPECT_FALSE(sleep.Sleep([] { return true; }));
  EXPECT_EQ(sleep.wakes_at(), Nanoseconds::zero());
}

TEST(PutOffTest, ToALaterTime) {
  const Nanoseconds begin = MonotonicNow();
  Sleeper sleeper(With::kTimer, begin + milliseconds(500));
  sleeper.sleep().PutOff(begin + milliseconds(600));
  EXPECT_EQ(sleeper.sleep().wakes_at(), begin + milliseconds(600));
  EXPECT_GE(sleeper.WokenAt(), begin + milliseconds(600));
  EXPECT_FALSE(sleeper.was_woken());
}

TEST(PutOffTest, ToAnEarlierTime) {
  const Nanoseconds begin = MonotonicNow();
  Sleeper sleeper(With::kTimer, begin + std::chrono::hours(1));
  sleeper.sleep().PutOff(begin + milliseconds(20));
  sleeper.WokenAt();
  EXPECT_FALSE(sleeper.was_woken());
}

TEST(PutOffTest, ForEver) {
  const Nanoseconds begin = MonotonicNow();
  Sleeper sleeper(With::kTimer, begin + milliseconds(500));
  sleeper.sleep().PutOff(TimedSleep::kNever);
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_FALSE(sleeper.has_woken());
  sleeper.sleep().Wake();
  sleeper.WokenAt();
  EXPECT_TRUE(sleeper.was_woken());
}

TEST(PutOffTest, NotWhoIsAwake) {
  TimedSleep sleep;
  sleep.UseTimer();
  sleep.PutOff(MonotonicNow() + seconds(1));
  EXPECT_EQ(sleep.wakes_at(), Nanoseconds::zero());
}

TEST(PutOffTest, NotWithoutATimer) {
  const Nanoseconds until = MonotonicNow() + milliseconds(50);
  Sleeper sleeper(With::kNone, until);
  sleeper.sleep().PutOff(TimedSleep::kNever);
  EXPECT_GE(sleeper.WokenAt(), until);
}

TEST(PutOffTest, WhereThereMayBeNoTimerItSleepsAsWithoutOne) {
  rlimit limit{};
  getrlimit(RLIMIT_SIGPENDING, &limit);
  const rlimit none{0, limit.rlim_max};
  setrlimit(RLIMIT_SIGPENDING, &none);
  const Nanoseconds until = MonotonicNow() + milliseconds(50);
  {
    Sleeper sleeper(With::kTimer, until);
    sleeper.sleep().PutOff(TimedSleep::kNever);
    EXPECT_GE(sleeper.WokenAt(), until);
  }
  setrlimit(RLIMIT_SIGPENDING, &limit);
}

// Nobody may be left asleep, whatever comes between the steps of the one and the other.
TEST(PutOffTest, WhoIsPutOffAndWokenAtOnceWakes) {
  for (int i = 0; i < 2000; ++i) {
    const Nanoseconds soon = MonotonicNow() + std::chrono::microseconds(1000 + 7 * (i % 50));
    Sleeper sleeper(With::kTimer, soon);
    sleeper.sleep().PutOff(TimedSleep::kNever);
    sleeper.sleep().Wake();
    sleeper.WokenAt();
    ASSERT_TRUE(sleeper.has_woken()) << i;
  }
}

}  // namespace
}  // namespace pystrobe::remote
