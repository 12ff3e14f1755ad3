// SPDX-License-Identifier: Apache-2.0
//
// Whether stacks get their true time: over many rounds of a program that works for a few intervals
// and sleeps, looked at at random.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "sampler/remote/thread_ledger.h"
#include "tests/cpp/support/thread_ledger_fixture.h"

namespace pystrobe::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kFirst = milliseconds(4), kSecond = milliseconds(20);
constexpr StackId kFirstWork{1}, kSecondWork{2}, kSleep{3};

struct Time {
  Nanoseconds wall{}, cpu{};
};

/// A thread that does two things one after the other and sleeps, again and again.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  /// Lets it run until `time`.
  void RunUntil(Nanoseconds time) {
    while (now_ < time) {
      const Nanoseconds step = std::min(time, phase_end_) - now_;
      Time& spent = truth[stack()];
      spent.wall += step;
      if (awake()) {
        spent.cpu += step;
        stat.cpu_ns += static_cast<uint64_t>(step.count());
      }
      now_ += step;
      if (now_ == phase_end_) NextPhase();
    }
  }

  StackId stack() const { return phase_; }
  bool awake() const { return phase_ != kSleep; }

  std::map<StackId, Time> truth;
  SchedStat stat{0, 0, 1};

 private:
  void NextPhase() {
    if (phase_ == kFirstWork) {
      phase_ = kSecondWork;
      phase_end_ = now_ + kSecond;
    } else if (phase_ == kSecondWork) {
      phase_ = kSleep;
      phase_end_ = now_ + milliseconds(10) + microseconds(random_() % 40'000);
    } else {
      phase_ = kFirstWork;
      phase_end_ = now_ + kFirst;
      ++stat.switches;
    }
  }

  std::mt19937_64 random_;
  Nanoseconds now_ = kStart, phase_end_ = kStart + kFirst;
  StackId phase_ = kFirstWork;
};

/// What samples of it come to, taken every `period`, give or take a half, for `ticks`.
std::map<StackId, Time> Sampled(Program& program, Nanoseconds period, uint64_t ticks) {
  std::mt19937_64 random(7);
  std::vector<Sample> samples;
  std::map<StackId, Time> sums;
  Tick tick{.number = 1, .time = kStart, .previous = kStart};
  ThreadLedger ledger(Timeline(ThreadIndex{0}, kStart, samples), tick, program.stat,
                      KernelAccount(program.stat));
  ledger.BeginAt(kStart, program.stat);
  const auto take_away = [&] {
    for (const Sample& sample : samples) {
      sums[sample.stack].wall += Nanoseconds(static_cast<int64_t>(sample.wall_ns));
      sums[sample.stack].cpu += Nanoseconds(static_cast<int64_t>(sample.cpu_ns));
    }
    samples.clear();
  };
  for (; tick.number < ticks; ++tick.number) {
    tick.previous = tick.time;
    tick.time += period / 2 + Nanoseconds(random() % static_cast<uint64_t>(period.count()));
    program.RunUntil(tick.time);
    if (!ledger.SeeStill(tick, program.stat)) {
      ledger.Take({tick, {.stat = program.stat, .awake = program.awake()}, program.stack(), 0});
    }
    if (tick.number % 100 == 0) {
      ledger.Flush();
      take_away();
    }
  }
  ledger.Finish(tick, true);
  take_away();
  return sums;
}

class ThreadLedgerShares : public ::testing::TestWithParam<Nanoseconds> {};

// Within 3 %: of so many looks the standard deviation is below 1 %.
TEST_P(ThreadLedgerShares, AreTrueHoweverShortTheVisits) {
  constexpr uint64_t kTicks = 400'000;
  Program program(11);
  std::map<StackId, Time> sampled = Sampled(program, GetParam(), kTicks);
  for (const auto& [stack, truth] : program.truth) {
    const auto wall = static_cast<double>(truth.wall.count());
    const auto cpu = static_cast<double>(truth.cpu.count());
    EXPECT_NEAR(static_cast<double>(sampled[stack].wall.count()), wall, 0.03 * wall)
        << ToIndex(stack);
    EXPECT_NEAR(static_cast<double>(sampled[stack].cpu.count()), cpu, 0.03 * cpu) << ToIndex(stack);
  }
}

INSTANTIATE_TEST_SUITE_P(Periods, ThreadLedgerShares,
                         ::testing::Values(milliseconds(1), microseconds(3300), milliseconds(10),
                                           milliseconds(50)),
                         [](const auto& period) {
                           return std::to_string(period.param.count() / 1000) + "us";
                         });

}  // namespace
}  // namespace pystrobe::remote
