// SPDX-License-Identifier: Apache-2.0
//
// Calls that are deeper than was asked for, or that the tree has no room for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "profiler/trace/thread_trace.h"
#include "tests/cpp/trace/kept_chunk.h"
#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

using Path = std::vector<Key>;
constexpr size_t kAmpleRoom = 1'000'000;

class SomeKeys : public KeyWatch {
 public:
  bool Admits(Key key) override { return !refused.contains(key); }
  bool IsRefused(Key key) override { return refused.contains(key); }
  bool IsOfTheProgram(Key key) override { return key != ours; }
  std::set<Key> refused;
  Key ours = nullptr;
};

/// The trace of the thread that makes it.
class Limited {
 public:
  explicit Limited(size_t max_depth, const std::vector<RunningCall>& running = {},
                   size_t room = kAmpleRoom)
      : room_(room),
        trace_(*ThreadTrace::Begin({gettid(), TickClock::Now(), ThreadCpuNow()}, running, watch_,
                                   rate_, {.max_depth = max_depth, .room = &room_})) {}
  ThreadTrace* operator->() { return trace_.get(); }
  SomeKeys& watch() { return watch_; }
  Nanoseconds Time(Ticks ticks) const { return rate_.ToTime(ticks); }

  void End() { trace_->End(ThreadCpuNow()); }
  /// Calls by the way to them, of what was called at all.
  std::map<Path, uint64_t> Calls() const {
    std::map<Path, uint64_t> calls;
    for (const CallNode& node : trace_->tree().nodes()) {
      if (node.calls > 0) calls[PathTo(node)] = node.calls;
    }
    return calls;
  }
  const CallNode* NodeAt(const Path& path) const {
    for (const CallNode& node : trace_->tree().nodes()) {
      if (PathTo(node) == path) return &node;
    }
    return nullptr;
  }

 private:
  static Path PathTo(const CallNode& node) {
    Path path;
    for (const CallNode* at = &node; at->parent != nullptr; at = at->parent) {
      path.insert(path.begin(), at->key);
    }
    return path;
  }

  SomeKeys watch_;
  TickRate rate_ = TickRate::Measure();
  NodeRoom room_;
  std::unique_ptr<ThreadTrace> trace_;
};

void GoTo(ThreadTrace& trace, const void* stack) {
  if (!trace.IsOn(stack) && !trace.GoBackTo(stack)) trace.BeginStack(stack, {});
}

// Any calls that a program can make, recursive ones and such as end by their caller's end, against
// counting them with a stack, or with several by turns.
void ExpectToCountAsStacksDo(Limited& trace, size_t depth, std::vector<Path> stacks,
                             std::mt19937& random, size_t room = kAmpleRoom) {
  std::map<Path, uint64_t> expected, left_out;
  uint64_t all_left_out = 0, unplaced = 0;
  size_t on = 0;
  GoTo(*trace.operator->(), &stacks[on]);
  for (int step = 0; step < 2000; ++step) {
    if (random() % 10 == 0) {
      on = random() % stacks.size();
      GoTo(*trace.operator->(), &stacks[on]);
    }
    Path& stack = stacks[on];
    if (!stack.empty() && random() % 100 < 46) {
      // The last one of a function: a caller's end may come without that of what it called.
      const size_t down = random() % 10 == 0 ? random() % stack.size() : 0;
      const Key key = stack[stack.size() - 1 - down];
      while (stack.back() != key) stack.pop_back();
      stack.pop_back();
      trace->Leave(key);
    } else {
      stack.push_back(KeyOf(random() % 6));
      const Path path(stack.begin(),
                      stack.begin() + static_cast<std::ptrdiff_t>(std::min(depth, stack.size())));
      const bool has_place = expected.contains(path) || expected.size() < room;
      if (!has_place) {
        ++unplaced;
      } else if (stack.size() <= depth) {
        ++expected[path];
      } else {
        ++left_out[path];
        ++all_left_out;
      }
      trace->Enter(stack.back());
    }
    ASSERT_EQ(trace->depth(), stack.size());
  }
  trace.End();
  EXPECT_EQ(trace.Calls(), expected);
  EXPECT_EQ(trace->left_out(), all_left_out);
  EXPECT_EQ(trace->unplaced(), unplaced);
  for (const auto& [path, calls] : left_out) EXPECT_EQ(trace.NodeAt(path)->left_out, calls);
  EXPECT_EQ(trace->unmatched(), 0U);
}

TEST(MaxDepth, CountsAsAStackDoes) {
  std::mt19937 random(1);
  for (size_t round = 0; round < 60; ++round) {
    Limited trace(1 + round % 5);
    ExpectToCountAsStacksDo(trace, 1 + round % 5, std::vector<Path>(1), random);
  }
}

// On one stack, and on several by turns; by the room alone, and by the depth too.
TEST(FullTree, CountsAsStacksDo) {
  std::mt19937 random(1);
  for (const size_t stacks : {1, 4}) {
    for (size_t room = 1; room <= 60; ++room) {
      const size_t depth = room % 2 == 0 ? 3 : 2000;
      Limited trace(depth, {}, room);
      ExpectToCountAsStacksDo(trace, depth, std::vector<Path>(stacks), random, room);
    }
  }
}

// Time of calls that have no place is their caller's, and what ends is found again.
TEST(FullTree, LeavesTimeToTheCaller) {
  Limited trace(0, {}, 1);
  trace->Enter(KeyOf(1));
  for (int i = 0; i < 3; ++i) {
    trace->Enter(KeyOf(2));
    trace->Enter(KeyOf(1));  // nor is this one the outer one's
    trace->Leave(KeyOf(1));
    trace->Leave(KeyOf(2));
  }
  trace->Leave(KeyOf(1));
  trace->Enter(KeyOf(1));
  trace->Leave(KeyOf(1));
  trace.End();
  EXPECT_EQ(trace.Calls(), (std::map<Path, uint64_t>{{{KeyOf(1)}, 2}}));
  EXPECT_EQ(trace->unplaced(), 6U);
  EXPECT_EQ(trace->left_out(), 0U);
  const CallNode* const outer = trace.NodeAt({KeyOf(1)});
  EXPECT_EQ(outer->self(), outer->total);
}

// What runs when the tracing begins and has no place leaves its own calls to whom it was called by.
TEST(FullTree, PassesOverWhatRuns) {
  Limited trace(0, {{KeyOf(1), nullptr}, {KeyOf(2), nullptr}}, 1);
  trace->Enter(KeyOf(3));
  trace->Leave(KeyOf(3));
  trace.End();
  EXPECT_EQ(trace->unplaced(), 1U);
  ASSERT_NE(trace.NodeAt({KeyOf(1)}), nullptr);
  EXPECT_EQ(trace.NodeAt({KeyOf(1), KeyOf(2)}), nullptr);
}

TEST(MaxDepth, CountsAsSeveralStacksDo) {
  std::mt19937 random(1);
  for (size_t round = 0; round < 60; ++round) {
    Limited trace(1 + round % 5);
    ExpectToCountAsStacksDo(trace, 1 + round % 5, std::vector<Path>(4), random);
  }
}

TEST(MaxDepth, TheTimeIsTheCallersOwn) {
  Limited trace(2);
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(1));
  trace->Enter(KeyOf(1));
  usleep(20'000);
  trace->Leave(KeyOf(1));
  trace->Leave(KeyOf(1));
  trace->Leave(KeyOf(0));
  trace.End();
  EXPECT_GE(trace.Time(trace.NodeAt({KeyOf(0), KeyOf(1)})->self()), std::chrono::milliseconds(20));
  EXPECT_LT(trace.Time(trace.NodeAt({KeyOf(0)})->self()), std::chrono::milliseconds(10));
}

TEST(MaxDepth, WhatGoesOnThereWasCountedWhereItBegan) {
  Limited trace(2);
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(1));  // a generator
  trace->Leave(KeyOf(1));
  trace->Enter(KeyOf(2));
  trace->Resume(KeyOf(1));
  trace->Leave(KeyOf(1));
  trace->Enter(KeyOf(3));  // one that begins too deep, and goes on where it is not
  trace->Leave(KeyOf(3));
  trace->Leave(KeyOf(2));
  trace->Resume(KeyOf(3));
  trace->Leave(KeyOf(3));
  trace.End();
  EXPECT_EQ(trace->left_out(), 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(1)})->calls, 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0), KeyOf(3)})->calls, 0U);
  EXPECT_EQ(trace->unmatched(), 0U);
}

TEST(MaxDepth, WhatCouldNotBeginDoesNotCount) {
  Limited trace(1);
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(0));
  trace->Enter(KeyOf(0));
  trace->TakeBack(KeyOf(0));
  trace->Leave(KeyOf(0));
  EXPECT_EQ(trace->depth(), 1U);
  trace->Leave(KeyOf(0));
  trace.End();
  EXPECT_EQ(trace->left_out(), 1U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->calls, 1U);
}

TEST(MaxDepth, WhatIsRefusedOrOursIsNotAmongThem) {
  Limited trace(1);
  trace.watch().refused = {KeyOf(1)};
  trace.watch().ours = KeyOf(2);
  trace->Enter(KeyOf(0));
  EXPECT_FALSE(trace->Enter(KeyOf(1)));
  trace->Enter(KeyOf(2));
  trace->Enter(KeyOf(3));
  trace->Leave(KeyOf(3));
  trace->Leave(KeyOf(2));
  EXPECT_FALSE(trace->Leave(KeyOf(1)));
  EXPECT_EQ(trace->depth(), 1U);
  trace->Leave(KeyOf(0));
  trace.End();
  EXPECT_EQ(trace->left_out(), 1U);
  EXPECT_EQ(trace->unmatched(), 0U);
}

TEST(MaxDepth, WhatRanBeforeIsNoLevelNorOnceItHasEnded) {
  const char frames[2] = {};
  const std::vector<RunningCall> running = {{KeyOf(0), &frames[0]}, {KeyOf(1), &frames[1]}};
  // By hooks that tell of their ends, and by such as do not.
  for (const bool tells : {true, false}) {
    Limited trace(1, running);
    const auto call = [&](const void* caller) {
      if (!tells && trace->IsAmongRunning()) trace->ReturnTo(caller);
      trace->Enter(KeyOf(5));
      EXPECT_TRUE(tells || !trace->IsAmongRunning());
      trace->Enter(KeyOf(6));
      trace->Leave(KeyOf(6));
      trace->Leave(KeyOf(5));
    };
    call(&frames[1]);
    if (tells) trace->Leave(KeyOf(1));
    call(&frames[0]);
    if (tells) trace->Leave(KeyOf(0));
    call(nullptr);
    // Called again, it is a call as any other.
    trace->Enter(KeyOf(0));
    trace->Enter(KeyOf(1));
    trace->Leave(KeyOf(1));
    trace->Leave(KeyOf(0));
    trace.End();
    const std::map<Path, uint64_t> expected = {{{KeyOf(0), KeyOf(1), KeyOf(5)}, 1},
                                               {{KeyOf(0), KeyOf(5)}, 1},
                                               {{KeyOf(5)}, 1},
                                               {{KeyOf(0)}, 1}};
    EXPECT_EQ(trace.Calls(), expected) << tells;
    EXPECT_EQ(trace->left_out(), 4U) << tells;
    EXPECT_EQ(trace->unmatched(), 0U) << tells;
  }
}

TEST(MaxDepth, TheEndOfTheTracingMayComeWithin) {
  Limited trace(1);
  for (int i = 0; i < 3; ++i) trace->Enter(KeyOf(0));
  trace.End();
  EXPECT_EQ(trace->left_out(), 2U);
  EXPECT_EQ(trace.NodeAt({KeyOf(0)})->total, trace.NodeAt({KeyOf(0)})->self());
}

TEST(MaxDepth, ATimelineIsToldOfNoneOfThem) {
  KeptChunk kept;
  SomeKeys watch;
  const TickRate rate = TickRate::Measure();
  const auto trace = *ThreadTrace::Begin({gettid(), TickClock::Now(), ThreadCpuNow()}, {}, watch,
                                         rate, {.timeline = &kept, .max_depth = 2});
  for (int i = 0; i < 10; ++i) trace->Enter(KeyOf(0));
  for (int i = 0; i < 10; ++i) trace->Leave(KeyOf(0));
  trace->End(ThreadCpuNow());
  EXPECT_EQ(kept.chunk.size, 4U);
  EXPECT_EQ(trace->left_out(), 8U);
}

}  // namespace
}  // namespace pystrobe::trace
