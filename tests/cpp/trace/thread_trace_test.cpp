// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/thread_trace.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <map>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

using std::chrono::milliseconds;

class CountedKeys : public KeyWatch {
 public:
  explicit CountedKeys(Key to_refuse) : refused(to_refuse) {}
  bool Admits(Key key) override {
    if (IsRefused(key)) return false;
    ++seen[key];
    return true;
  }
  bool IsRefused(Key key) override { return key == refused; }
  Key refused;
  std::map<Key, int> seen;
};

/// The trace of the thread that makes it.
class Traced {
 public:
  explicit Traced(std::vector<RunningCall> running = {}, Key refused = nullptr)
      : watch_(refused),
        trace_(*ThreadTrace::Begin({gettid(), TickClock::Now(), ThreadCpuNow()}, running, watch_,
                                   rate_)) {}
  ThreadTrace& operator*() { return *trace_; }
  ThreadTrace* operator->() { return trace_.get(); }
  const CountedKeys& watch() const { return watch_; }
  void Refuse(Key key) { watch_.refused = key; }
  Nanoseconds Time(Ticks ticks) const { return rate_.ToTime(ticks); }
  /// The node that these calls, one below the other, lead to.
  const CallNode* NodeAt(const std::vector<Key>& path) const {
    const CallNode* node = &trace_->tree().root();
    for (const Key key : path) {
      const CallNode* child = node->first_child;
      while (child != nullptr && child->key != key) child = child->next_sibling;
      if (child == nullptr) return nullptr;
      node = child;
    }
    return node;
  }

 private:
  CountedKeys watch_;
  TickRate rate_ = TickRate::Measure();
  std::unique_ptr<ThreadTrace> trace_;
};

void Spin(Nanoseconds cpu) {
  const Nanoseconds end = ThreadCpuNow() + cpu;
  while (ThreadCpuNow() < end) continue;
}

double Ms(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

TEST(ThreadTrace, ACoroutineLivesFromItsFirstStepToItsEnd) {
  const char frames[3] = {};
  const Key coroutine = KeyOf(0);
  Traced trace;
  for (int i : {0, 1}) {
    trace->Enter(coroutine);
    trace->BeginLife(coroutine, &frames[i]);
    trace->Leave(coroutine);
  }
  Spin(milliseconds(5));
  trace->Resume(coroutine);
  trace->EndLife(coroutine, &frames[1]);
  trace->EndLife(coroutine, &frames[2]);  // began before the tracing
  trace->Leave(coroutine);
  trace->End(ThreadCpuNow());
  const CallNode& node = *trace.NodeAt({coroutine});
  EXPECT_EQ(node.calls, 2U);
  EXPECT_EQ(node.finished, 1U);
  EXPECT_GE(trace.Time(node.lifetime), milliseconds(5));
  EXPECT_LT(node.total, node.lifetime);
}

TEST(ThreadTrace, AFrameInThePlaceOfOneThatIsGoneIsAnother) {
  const char frame = 0;
  Traced trace;
  trace->Enter(KeyOf(0));
  trace->BeginLife(KeyOf(0), &frame);  // whose end is not told
  trace->Leave(KeyOf(0));
  trace->EndLife(KeyOf(1), &frame);
  trace->End(ThreadCpuNow());
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->finished, 0U);
}

TEST(ThreadTrace, ACallHasTheTimeThatItsStackIsTheThreads) {
  const char stacks[2] = {};
  Traced trace;
  trace->Enter(KeyOf(0));
  EXPECT_TRUE(trace->GoBackTo(&stacks[0]));  // the one that it was on before anybody asked
  EXPECT_FALSE(trace->GoBackTo(&stacks[1]));
  trace->BeginStack(&stacks[1], std::vector<RunningCall>{{KeyOf(1), nullptr}});
  trace->Enter(KeyOf(2));
  EXPECT_TRUE(trace->GoBackTo(&stacks[0]));
  Spin(milliseconds(20));
  EXPECT_TRUE(trace->GoBackTo(&stacks[1]));
  Spin(milliseconds(5));
  trace->Leave(KeyOf(2));
  EXPECT_TRUE(trace->GoBackTo(&stacks[0]));
  trace->Leave(KeyOf(0));
  trace->End(ThreadCpuNow());
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)}), nullptr);
  EXPECT_EQ(trace.NodeAt({KeyOf(1)})->running, 1U);
  const CallNode& first = *trace.NodeAt({KeyOf(0)});
  const CallNode& second = *trace.NodeAt({KeyOf(1), KeyOf(2)});
  EXPECT_EQ(second.calls, 1U);
  EXPECT_GE(trace.Time(first.cpu()), milliseconds(19));
  EXPECT_GE(trace.Time(second.cpu()), milliseconds(4));
  EXPECT_LT(trace.Time(second.cpu()), milliseconds(15));
}

TEST(ThreadTrace, WhatIsRefusedCountsForItsCaller) {
  Traced trace;
  trace.Refuse(KeyOf(1));
  EXPECT_TRUE(trace->Enter(KeyOf(0)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(trace->Enter(KeyOf(1)));
    EXPECT_TRUE(trace->Enter(KeyOf(2)));
    EXPECT_TRUE(trace->Leave(KeyOf(2)));
    EXPECT_FALSE(trace->Leave(KeyOf(1)));
  }
  EXPECT_EQ(trace->depth(), 1U);
  EXPECT_TRUE(trace->Leave(KeyOf(0)));
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(2)})->calls, 3U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)}), nullptr);
  EXPECT_EQ(trace->unmatched(), 0U);
}

TEST(ThreadTrace, WhatRanBeforeAndIsRefusedTellsWhoHasEnded) {
  const char frames[3] = {};
  Traced trace({{KeyOf(0), &frames[0]}, {KeyOf(1), &frames[1]}, {KeyOf(2), &frames[2]}}, KeyOf(1));
  EXPECT_EQ(trace->depth(), 2U);
  trace->ReturnTo(&frames[1]);
  trace->Enter(KeyOf(5));
  trace->Leave(KeyOf(5));
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(5)})->calls, 1U);
  EXPECT_EQ(trace->depth(), 1U);
}

TEST(ThreadTrace, WhatCouldNotBeginDoesNotCount) {
  Traced trace;
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(1));
  trace->TakeBack(KeyOf(1));
  trace->Leave(KeyOf(0));
  EXPECT_EQ(trace->depth(), 0U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)})->calls, 0U);
}

// As where an evaluator of frames sees only the calls that begin.
TEST(ThreadTrace, WhatRanBeforeEndsUntoldOnceItsCallerGoesOn) {
  const char frames[3] = {};
  Traced trace({{KeyOf(0), &frames[0]}, {KeyOf(1), &frames[1]}, {KeyOf(2), &frames[2]}});
  const auto call = [&trace](const void* caller, Key key) {
    if (trace->IsAmongRunning()) trace->ReturnTo(caller);
    trace->Enter(key);
    EXPECT_FALSE(trace->IsAmongRunning());
    trace->Leave(key);
  };
  call(&frames[2], KeyOf(5));
  EXPECT_EQ(trace->depth(), 3U);
  call(&frames[0], KeyOf(6));
  EXPECT_EQ(trace->depth(), 1U);
  const char other = 0;
  call(&other, KeyOf(7));
  EXPECT_EQ(trace->depth(), 1U) << "who calls is not known";
  call(nullptr, KeyOf(8));
  EXPECT_EQ(trace->depth(), 0U);
  call(nullptr, KeyOf(8));
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1), KeyOf(2), KeyOf(5)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(6)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(7)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(8)})->calls, 2U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1), KeyOf(2)})->running, 1U);
}

// The interpreter, which calls the hooks, knows nothing of exceptions.
TEST(ThreadTrace, TellsOfALackOfMemoryAndGoesOn) {
  class Lacking : public KeyWatch {
   public:
    bool Admits(Key) override {
      if (++asked == 3) throw std::bad_alloc();
      return true;
    }
    bool IsRefused(Key) override { return false; }
    int asked = 0;
  };
  Lacking watch;
  const TickRate rate = TickRate::Measure();
  const auto trace =
      *ThreadTrace::Begin({gettid(), TickClock::Now(), ThreadCpuNow()}, {}, watch, rate);
  EXPECT_TRUE(trace->Enter(KeyOf(0)));
  EXPECT_TRUE(trace->Enter(KeyOf(1)));
  EXPECT_FALSE(trace->lacked_memory());
  // Not "not traced", or the interpreter would tell of it no more; nor is its end the outer one's.
  EXPECT_TRUE(trace->Enter(KeyOf(0)));
  EXPECT_TRUE(trace->lacked_memory());
  EXPECT_TRUE(trace->Leave(KeyOf(0)));
  EXPECT_EQ(trace->depth(), 2U);
  EXPECT_TRUE(trace->Enter(KeyOf(0)));
  EXPECT_EQ(trace->depth(), 3U);
  EXPECT_TRUE(trace->Leave(KeyOf(0)));
  EXPECT_TRUE(trace->Leave(KeyOf(1)));
  EXPECT_TRUE(trace->Leave(KeyOf(0)));
  EXPECT_EQ(trace->depth(), 0U);
  EXPECT_EQ(trace->unmatched(), 0U);
  EXPECT_EQ(trace->tree().root().first_child->calls, 1U);
}

// What is most often has a way of its own. Without CPU time the clock alone decides.
TEST(ThreadTrace, GoesTheShortWayWhereItWasBefore) {
  CountedKeys watch(nullptr);
  const TickRate rate = TickRate::Measure();
  const auto trace =
      *ThreadTrace::Begin({gettid(), TickClock::Now(), {}}, {}, watch, rate, {.cpu_time = false});
  EXPECT_FALSE(trace->EnterAgain(KeyOf(0))) << "the first time";
  trace->Enter(KeyOf(0));
  EXPECT_FALSE(trace->LeaveAgain(KeyOf(1))) << "another";
  trace->Leave(KeyOf(0));
  trace->Enter(KeyOf(1));
  trace->Leave(KeyOf(1));
  for (int round = 0; round < 3; ++round) {
    for (const size_t key : {0, 1}) {
      // The first time round nobody knows what comes after the second.
      const bool is_known = TickClock::UsesTsc() && (round > 0 || key == 1);
      EXPECT_EQ(trace->EnterAgain(KeyOf(key)), is_known) << round << key;
      if (!is_known) trace->Enter(KeyOf(key));
      EXPECT_EQ(trace->LeaveAgain(KeyOf(key)), TickClock::UsesTsc());
      if (!TickClock::UsesTsc()) trace->Leave(KeyOf(key));
    }
  }
  EXPECT_EQ(trace->depth(), 0U);
  EXPECT_FALSE(trace->LeaveAgain(KeyOf(1))) << "nothing is open";
}

TEST(ThreadTrace, CountsWhatIsEnteredAndNotWhatGoesOn) {
  Traced trace;
  trace->Enter(KeyOf(0));
  for (int i = 0; i < 3; ++i) {
    trace->Enter(KeyOf(1));
    trace->Leave(KeyOf(1));
    trace->Resume(KeyOf(1));
    trace->Leave(KeyOf(1));
  }
  trace->Leave(KeyOf(0));
  EXPECT_EQ(trace->depth(), 0U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)})->calls, 3U);
  EXPECT_EQ(trace.watch().seen.at(KeyOf(1)), 1);
}

// Any calls that a program can make, against counting them with a stack.
TEST(ThreadTrace, CountsAsAStackDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Traced trace;
    std::map<std::vector<Key>, uint64_t> expected;
    std::vector<Key> stack;
    for (int step = 0; step < 2000; ++step) {
      if (!stack.empty() && random() % 100 < 48) {
        trace->Leave(stack.back());
        stack.pop_back();
      } else {
        stack.push_back(KeyOf(random() % 12));
        ++expected[stack];
        trace->Enter(stack.back());
      }
      ASSERT_EQ(trace->depth(), stack.size());
    }
    trace->End(ThreadCpuNow());
    size_t nodes = 1;
    for (const auto& [path, calls] : expected) {
      const CallNode* node = trace.NodeAt(path);
      ASSERT_NE(node, nullptr);
      ASSERT_EQ(node->calls, calls);
      ++nodes;
    }
    EXPECT_EQ(trace->tree().nodes().size(), nodes);
    EXPECT_EQ(trace->unmatched(), 0U);
    Ticks own = 0;
    for (const CallNode& node : trace->tree().nodes()) {
      if (node.parent != nullptr) own += node.self();
    }
    EXPECT_LE(own, trace->end() - trace->begin()) << "no moment belongs to two functions";
  }
}

TEST(ThreadTrace, WhatEndsUnnoticedEndsWithItsCaller) {
  Traced trace;
  for (const size_t key : {0, 1, 2, 3}) trace->Enter(KeyOf(key));
  trace->Leave(KeyOf(1));
  EXPECT_EQ(trace->depth(), 1U);
  trace->Enter(KeyOf(4));
  EXPECT_NE(trace.NodeAt({KeyOf(0), KeyOf(4)}), nullptr);
}

TEST(ThreadTrace, TheEndOfWhatNeverBeganIsPassedOver) {
  Traced trace;
  trace->Leave(KeyOf(0));
  trace->Enter(KeyOf(1));
  trace->Leave(KeyOf(0));
  EXPECT_EQ(trace->depth(), 1U);
  EXPECT_EQ(trace->unmatched(), 2U);
}

TEST(ThreadTrace, CallsThatRunAlreadyAreToldApart) {
  Traced trace({{KeyOf(0)}, {KeyOf(1)}});
  trace->Enter(KeyOf(2));
  trace->Leave(KeyOf(2));
  trace->Leave(KeyOf(1));
  trace->Enter(KeyOf(1));
  trace->End(ThreadCpuNow());
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->running, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->calls, 0U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)})->running, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->total, trace->end() - trace->begin());
}

TEST(ThreadTrace, DeeperThanThereIsRoomCallsAreCounted) {
  Traced trace;
  constexpr size_t kDepth = ThreadTrace::kMostDepth + 10;
  for (size_t i = 0; i < kDepth; ++i) trace->Enter(KeyOf(0));
  EXPECT_EQ(trace->depth(), kDepth);
  for (size_t i = 0; i < kDepth; ++i) trace->Leave(KeyOf(0));
  EXPECT_EQ(trace->left_out(), 10U);
  EXPECT_EQ(trace->depth(), 0U);
  EXPECT_EQ(trace->unmatched(), 0U);
  uint64_t calls = 0;
  for (const CallNode& node : trace->tree().nodes()) calls += node.calls;
  EXPECT_EQ(calls, kDepth - 10);
  EXPECT_GT(trace.NodeAt({KeyOf(0), KeyOf(0)})->total, 0U);
}

TEST(ThreadTrace, SleepHasWallTimeAndHardlyAnyOfTheCpu) {
  Traced trace;
  const Nanoseconds begin = MonotonicNow();
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(1));
  usleep(50'000);
  trace->Leave(KeyOf(1));
  trace->Leave(KeyOf(0));
  const Nanoseconds elapsed = MonotonicNow() - begin;
  trace->End(ThreadCpuNow());
  const CallNode& nap = *trace.NodeAt({KeyOf(0), KeyOf(1)});
  EXPECT_GE(trace.Time(nap.total), milliseconds(50));
  EXPECT_LT(trace.Time(nap.cpu()), milliseconds(5));
  EXPECT_LE(trace.Time(trace.NodeAt({KeyOf(0)})->self()), elapsed - milliseconds(50));
}

TEST(ThreadTrace, WithoutCpuTimeItsClockIsNotRead) {
  CountedKeys watch(nullptr);
  const TickRate rate = TickRate::Measure();
  const auto trace =
      *ThreadTrace::Begin({.at = TickClock::Now()}, {}, watch, rate, {.cpu_time = false});
  trace->Enter(KeyOf(0));
  for (int i = 0; i < 3; ++i) {
    trace->Enter(KeyOf(1));
    usleep(2'000);
    trace->Leave(KeyOf(1));
  }
  trace->End({});
  EXPECT_EQ(trace->clock_looks(), 0U);
  EXPECT_EQ(trace->off_cpu(), 0U);
  const CallNode& nap = *trace->tree().root().first_child->first_child;
  EXPECT_EQ(nap.calls, 3U);
  EXPECT_GE(rate.ToTime(nap.total), milliseconds(6));
}

// As where a hypervisor had the CPU for 5 ms, which the thread was not charged for.
TEST(ThreadTrace, NoCallIsWithoutACpuForLongerThanItLasts) {
  CountedKeys watch(nullptr);
  const TickRate rate = TickRate::Measure();
  const ThreadStart start{gettid(), TickClock::Now(), ThreadCpuNow() + milliseconds(5)};
  const auto trace = *ThreadTrace::Begin(start, {}, watch, rate);
  if (SwitchFlag::Available()) SwitchFlag::OfThisThread().Set();  // so it is found in the call
  trace->Enter(KeyOf(0));
  usleep(1'000);
  trace->Leave(KeyOf(0));
  trace->End(ThreadCpuNow());
  EXPECT_GE(rate.ToTime(trace->off_cpu()), milliseconds(5));
  const CallNode& call = *trace->tree().root().first_child;
  EXPECT_LE(call.off_cpu, call.total);
}

TEST(ThreadTrace, WhatWasBeforeACallIsItsCallers) {
  CountedKeys watch(nullptr);
  const TickRate rate = TickRate::Measure();
  const ThreadStart start{gettid(), TickClock::Now(), ThreadCpuNow() + milliseconds(5)};
  const auto trace = *ThreadTrace::Begin(start, {}, watch, rate);
  if (SwitchFlag::Available()) SwitchFlag::OfThisThread().Set();
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(1));
  usleep(1'000);
  trace->Leave(KeyOf(1));  // finds out about these 5 ms too
  const Nanoseconds end = ThreadCpuNow() + milliseconds(8);
  while (ThreadCpuNow() < end) continue;
  trace->Leave(KeyOf(0));
  trace->End(ThreadCpuNow());
  const CallNode& caller = *trace->tree().root().first_child;
  const CallNode& called = *caller.first_child;
  EXPECT_GE(rate.ToTime(called.off_cpu), milliseconds(1));
  EXPECT_LE(called.off_cpu, called.total);
  EXPECT_GE(rate.ToTime(caller.off_cpu), milliseconds(6));
  EXPECT_GE(rate.ToTime(caller.cpu()), milliseconds(2));
}

TEST(ThreadTrace, TheKernelIsAskedNowAndThenWhateverTheFlagSays) {
  Traced trace;
  const Nanoseconds end = ThreadCpuNow() + 40 * OffCpu::kLongestTrust;
  while (ThreadCpuNow() < end) {
    trace->Enter(KeyOf(0));
    trace->Leave(KeyOf(0));
  }
  trace->End(ThreadCpuNow());
  EXPECT_GE(trace->clock_looks(), 35U);
}

// On one CPU, which they have by turns: what each has is no part of the elapsed time.
TEST(ThreadTrace, CpuTimeIsWhatTheKernelCharged) {
  constexpr int kThreads = 3;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&one] {
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      Traced trace;
      const Nanoseconds before = ThreadCpuNow();
      trace->Enter(KeyOf(3));
      for (int round = 0; round < 20; ++round) {
        trace->Enter(KeyOf(0));
        const Nanoseconds end = ThreadCpuNow() + milliseconds(5);
        while (ThreadCpuNow() < end) {
          for (int call = 0; call < 1000; ++call) {
            trace->Enter(KeyOf(1));
            trace->Leave(KeyOf(1));
          }
        }
        trace->Leave(KeyOf(0));
        trace->Enter(KeyOf(2));
        usleep(1000);
        trace->Leave(KeyOf(2));
      }
      trace->Leave(KeyOf(3));
      const Nanoseconds used = ThreadCpuNow() - before;
      trace->End(ThreadCpuNow());
      const Nanoseconds told = trace.Time(trace.NodeAt({KeyOf(3)})->cpu());
      EXPECT_NEAR(Ms(told), Ms(used), 0.002 * Ms(used));
      Nanoseconds of_calls{};
      for (const size_t key : {0, 2}) {
        of_calls += trace.Time(trace.NodeAt({KeyOf(3), KeyOf(key)})->cpu());
      }
      // What a hypervisor took of a call may be found in the next one, which may be too short for
      // it.
      EXPECT_NEAR(Ms(of_calls), Ms(told), 0.02 * Ms(used));
      if (SwitchFlag::Available()) {
        const double most = 100 + 2 * Ms(used);
        EXPECT_LT(static_cast<double>(trace->clock_looks()), most) << "the clock was asked";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TickClock, RunsAsTheMonotonicClockDoes) {
  TickRate rate = TickRate::Measure();
  constexpr auto kRounding = std::chrono::microseconds(1);
  const Nanoseconds before = MonotonicNow();
  const Ticks begin = TickClock::Now();
  const Nanoseconds after = MonotonicNow();
  usleep(20'000);
  const Ticks end = TickClock::Now();
  const Nanoseconds elapsed = MonotonicNow() - before;
  rate.Refine();
  EXPECT_LE(rate.ToTime(end - begin), elapsed + kRounding);
  EXPECT_GE(rate.ToTime(end - begin), milliseconds(20));
  EXPECT_GE(rate.TimeAt(begin), before - kRounding);
  EXPECT_LE(rate.TimeAt(begin), after + kRounding);
}

}  // namespace
}  // namespace pystrobe::trace
