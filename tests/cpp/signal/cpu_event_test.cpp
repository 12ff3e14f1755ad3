// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/cpu_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace pystrobe::signals {
namespace {

using std::chrono::milliseconds;

std::atomic<int> signals{0};
std::atomic<int> of_timer{0};
std::atomic<int> not_ours{0};
std::atomic<pid_t> receiver{0};

void CountAll(int, siginfo_t* info, void*) {
  receiver = gettid();
  ++(MayBeOurs(*info) ? signals : not_ours);
  if (IsOfTimer(*info)) ++of_timer;
}

/// In user mode, but for a look at the clock now and then.
void Burn(Nanoseconds cpu) {
  const Nanoseconds end = ThreadCpuNow() + cpu;
  volatile uint64_t x = 1;
  while (ThreadCpuNow() < end) {
    for (int i = 0; i < 20'000; ++i) x = x * 3 + 1;
  }
}

class CpuEventTest : public ::testing::TestWithParam<CpuSource> {
 protected:
  CpuEventTest() {
    struct sigaction action{};
    action.sa_sigaction = CountAll;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kSignal, &action, &before_);
    signals = of_timer = not_ours = 0;
    receiver = 0;
  }
  ~CpuEventTest() override { sigaction(kSignal, &before_, nullptr); }

  static CpuEvent Start(pid_t tid, Nanoseconds period) {
    auto event = CpuEvent::Start(GetParam(), tid, period);
    EXPECT_TRUE(event) << event.error().message;
    return *std::move(event);
  }

 private:
  struct sigaction before_{};
};

TEST_P(CpuEventTest, SignalsAsCpuTimeIsUsed) {
  const Nanoseconds begin = MonotonicNow();
  {
    const CpuEvent event = Start(gettid(), milliseconds(10));
    Burn(milliseconds(300));
  }
  // Of timers only those that a tick of the scheduler finds due. The perf clock goes on while a
  // host has taken the CPU away.
  EXPECT_GE(signals, 20);
  const auto periods = (MonotonicNow() - begin) / milliseconds(10) + 1;
  EXPECT_LE(signals - of_timer, periods);
  EXPECT_LE(of_timer, GetParam() == CpuSource::kPerf ? 0 : periods);
  EXPECT_EQ(receiver, gettid());
  EXPECT_EQ(not_ours, 0);
  const int count = signals;
  Burn(milliseconds(50));
  EXPECT_EQ(signals, count) << "it has ended";
}

TEST_P(CpuEventTest, IsOfOneThread) {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> go{false}, done{false};
  std::thread thread([&] {
    tid = gettid();
    while (!go) std::this_thread::yield();
    Burn(milliseconds(100));
    done = true;
    while (go) std::this_thread::sleep_for(milliseconds(1));
  });
  while (tid == 0) std::this_thread::yield();
  {
    const CpuEvent event = Start(tid, milliseconds(10));
    Burn(milliseconds(100));
    EXPECT_NE(receiver, gettid());
    go = true;
    while (!done) std::this_thread::yield();
    EXPECT_GE(signals, 5);
    EXPECT_EQ(receiver, tid);
  }
  go = false;
  thread.join();
}

TEST_P(CpuEventTest, SaysThatTheThreadHasEnded) {
  pid_t tid = 0;
  std::thread([&tid] { tid = gettid(); }).join();
  // The kernel has it for a moment after it was joined.
  const Nanoseconds deadline = MonotonicNow() + std::chrono::seconds(10);
  while (CpuTimeOf(tid) && MonotonicNow() < deadline) usleep(100);
  const auto event = CpuEvent::Start(GetParam(), tid, milliseconds(10));
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, ErrorCode::kExited) << event.error().message;
  EXPECT_FALSE(CpuTimeOf(tid));
}

/// As long as it lives no timer can be made.
class NoPendingSignals {
 public:
  NoPendingSignals() {
    getrlimit(RLIMIT_SIGPENDING, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_SIGPENDING, &none);
  }
  ~NoPendingSignals() { setrlimit(RLIMIT_SIGPENDING, &before_); }
  NoPendingSignals(const NoPendingSignals&) = delete;
  NoPendingSignals& operator=(const NoPendingSignals&) = delete;

 private:
  rlimit before_{};
};

TEST_P(CpuEventTest, SaysWhichLimitIsMet) {
  const NoPendingSignals limit;
  const auto event = CpuEvent::Start(GetParam(), gettid(), milliseconds(10));
  EXPECT_EQ(event.has_value(), GetParam() != CpuSource::kTimer);
  const std::optional<Error> error = event ? event->lack() : event.error();
  ASSERT_EQ(error.has_value(), GetParam() != CpuSource::kPerf);
  if (!error) return;
  EXPECT_THAT(error->message, ::testing::EndsWith("(see `ulimit -i`)"));
}

TEST_P(CpuEventTest, LacksNothing) { EXPECT_FALSE(Start(gettid(), milliseconds(10)).lack()); }

INSTANTIATE_TEST_SUITE_P(Sources, CpuEventTest,
                         ::testing::Values(CpuSource::kPerf, CpuSource::kPerfUser,
                                           CpuSource::kTimer),
                         [](const auto& source) {
                           std::string name(CpuSourceName(source.param));
                           std::erase_if(name, [](char c) {
                             return !std::isalpha(static_cast<unsigned char>(c));
                           });
                           return name;
                         });

TEST(CpuTimeTest, IsThatOfTheThread) {
  const auto before = CpuTimeOf(gettid());
  Burn(milliseconds(20));
  const auto after = CpuTimeOf(gettid());
  ASSERT_TRUE(before && after);
  EXPECT_GE(*after - *before, milliseconds(20));
  EXPECT_NEAR(static_cast<double>(after->count()), static_cast<double>(ThreadCpuNow().count()),
              1e6);
}

}  // namespace
}  // namespace pystrobe::signals
