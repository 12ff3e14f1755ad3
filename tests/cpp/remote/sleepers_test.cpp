// SPDX-License-Identifier: Apache-2.0
//
// With the threads of a real interpreter.
#include "sampler/remote/sleepers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "sampler/remote/native_stacks.h"
#include "tests/cpp/support/python_target.h"

namespace pystrobe::remote {
namespace {

using std::chrono::seconds;

// More than are copied in one read. Each says so just before it sleeps.
constexpr size_t kSleepers = 40;
constexpr const char* kProgram =
    "import signal, sys, threading, time\n"
    "def say_so():\n"
    "  sys.stdout.write('s')\n"
    "  sys.stdout.flush()\n"
    "def sleep(wake):\n"
    "  say_so()\n"
    "  wake.wait()\n"
    "  if stays: sleep_on()\n"
    "def sleep_on():\n"
    "  say_so()\n"
    "  time.sleep(1000)\n"
    "def wake_one(*_): events.pop().set()\n"
    "def move_one(*_):\n"
    "  stays.append(True)\n"
    "  wake_one()\n"
    "stays = []\n"
    "events = [threading.Event() for _ in range(40)]\n"
    "signal.signal(signal.SIGUSR1, wake_one)\n"
    "signal.signal(signal.SIGUSR2, move_one)\n"
    "for event in events: threading.Thread(target=sleep, args=(event,), daemon=True).start()\n"
    "while True: pass\n";

// One that naps among those that sleep. It is the youngest, and so the first to be chosen: until
// all are copied there is time to wake from most naps.
constexpr size_t kAtOnce = 32;
constexpr const char* kNapper =
    "import threading, time\n"
    "def sleep(): time.sleep(1000)\n"
    "def nap(length): time.sleep(length)\n"
    "def work():\n"
    "  for _ in range(3000): pass\n"
    "def napper():\n"
    "  print('s' * 32, flush=True)\n"
    "  while True:\n"
    "    for length in [0.0003] * 16 + [0.01]:\n"
    "      nap(length)\n"
    "      work()\n"
    "for _ in range(30): threading.Thread(target=sleep, daemon=True).start()\n"
    "threading.Thread(target=napper, daemon=True).start()\n"
    "sleep()\n";

/// An interpreter that runs `text` and has said so often that it is ready.
class SleepersOf : public SampledPython {
 protected:
  SleepersOf(const char* text, size_t ready) : SampledPython(text, std::string(ready, 's')) {}

  void SetUp() override {
    SampledPython::SetUp();
    if (HasFatalFailure()) return;
    if (!threads_->exact_clock()) GTEST_SKIP() << "the kernel keeps no scheduler statistics";
  }

  void Take() {
    Sleepers(*context_, *threads_).Take(tick_);
    Next(MonotonicNow());
  }

  /// Takes until so many have their stacks: they may not all have been asleep yet.
  void TakeUntil(size_t wanted) {
    const Nanoseconds deadline = MonotonicNow() + seconds(20);
    while (CountTaken() < wanted && MonotonicNow() < deadline) Take();
  }

  size_t CountTaken() const {
    return static_cast<size_t>(std::ranges::count_if(
        threads_->threads(), [](const auto& thread) { return thread->has_stack(); }));
  }

  bool HasFunction(const SampledThread& thread, std::string_view name) const {
    return std::ranges::any_of(tables_.FramesOf(thread.stack()), [&](FrameId frame) {
      return tables_.text(tables_.function(tables_.frame(frame).function).name) == name;
    });
  }
};

class SleepersTest : public SleepersOf {
 protected:
  SleepersTest() : SleepersOf(kProgram, kSleepers) {}

  void SetUp() override {
    SleepersOf::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    ASSERT_EQ(threads_->threads().size(), kSleepers + 1);
  }

  SampledThread& MainThread() const {
    return **std::ranges::find_if(threads_->threads(), [this](const auto& thread) {
      return thread->id().tid == program_.pid();
    });
  }
};

class SleepersAndANapperTest : public SleepersOf {
 protected:
  SleepersAndANapperTest() : SleepersOf(kNapper, kAtOnce) {}
};

TEST_F(SleepersTest, AllThatSleepAreTakenWithProof) {
  TakeUntil(kSleepers);
  EXPECT_EQ(CountTaken(), kSleepers);
  for (const auto& thread : threads_->threads()) {
    if (thread.get() == &MainThread()) continue;
    EXPECT_TRUE(thread->has_stack());
    EXPECT_EQ(thread->standing_flags(), 0) << "neither marked, nor incomplete, nor with the lock";
    EXPECT_TRUE(HasFunction(*thread, "sleep"));
  }
}

TEST_F(SleepersTest, WhoRunsIsLeftToOthers) {
  TakeUntil(kSleepers);
  for (int i = 0; i < 20; ++i) Take();
  EXPECT_FALSE(MainThread().has_stack());
  EXPECT_EQ(CountTaken(), kSleepers);
}

// What was copied is not what it did when it was chosen, as often as not.
TEST_F(SleepersAndANapperTest, WhoWakesMeanwhileIsNotTaken) {
  size_t taken = 0;
  for (int round = 0; round < 300; ++round) {
    ListThreads();
    Take();
    for (const auto& thread : threads_->threads()) {
      if (!HasFunction(*thread, "napper")) continue;
      ASSERT_TRUE(HasFunction(*thread, "nap")) << "it sleeps nowhere else";
      ++taken;
    }
  }
  EXPECT_GT(taken, 0U) << "it sleeps all the while as well";
}

TEST_F(SleepersTest, WhoHasAStackIsNotTakenAgain) {
  TakeUntil(kSleepers);
  ASSERT_EQ(kill(program_.pid(), SIGUSR2), 0);
  ASSERT_EQ(program_.Read(1), "s");
  for (int i = 0; i < 20; ++i) {
    usleep(1000);
    Take();
  }
  for (const auto& thread : threads_->threads()) EXPECT_FALSE(HasFunction(*thread, "sleep_on"));
}

TEST_F(SleepersTest, OneThatHasEndedIsNotTakenAndTheOthersAre) {
  ASSERT_EQ(kill(program_.pid(), SIGUSR1), 0);
  const auto count = [this] { return ListTasks(program_.pid())->size(); };
  const Nanoseconds deadline = MonotonicNow() + seconds(20);
  while (count() > kSleepers && MonotonicNow() < deadline) usleep(1000);
  ASSERT_EQ(count(), kSleepers);
  TakeUntil(kSleepers - 1);
  EXPECT_EQ(CountTaken(), kSleepers - 1);
  for (const auto& thread : threads_->threads()) {
    EXPECT_FALSE(thread->gone() && thread->has_stack());
  }
}

TEST_F(SleepersTest, NothingIsTakenWithLocalVariables) {
  context_->locals = true;
  for (int i = 0; i < 20; ++i) Take();
  EXPECT_EQ(CountTaken(), 0U);
}

TEST_F(SleepersTest, NothingIsTakenWithNativeFrames) {
  auto native = NativeStacks::Start(*target_, tables_, quality_);
  ASSERT_TRUE(native) << native.error().message;
  context_->native = native->get();
  for (int i = 0; i < 20; ++i) Take();
  EXPECT_EQ(CountTaken(), 0U);
}

}  // namespace
}  // namespace pystrobe::remote
