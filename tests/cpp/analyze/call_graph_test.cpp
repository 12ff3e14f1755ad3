// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/call_graph.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/cpp/support/memory_recording.h"

namespace pystrobe {
namespace {

using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

class CallGraphTest : public ::testing::Test {
 protected:
  CallGraphTest() { recording_.mutable_metadata().pause_mode = kByTracing; }

  void Call(uint64_t tid, std::initializer_list<testing::FrameSpec> frames, uint32_t calls,
            uint64_t wall_ns) {
    Tables& tables = recording_.mutable_tables();
    recording_.Add({.time_ns = static_cast<int64_t>(time_ns_ += wall_ns),
                    .wall_ns = wall_ns,
                    .cpu_ns = wall_ns / 2,
                    .thread = MakeThread(tables, tid, "thread"),
                    .stack = MakeStack(tables, frames),
                    .count = calls});
  }

  std::map<std::string, CalledFunction> Graph() {
    const auto profile = Fold(recording_, {});
    std::map<std::string, CalledFunction> by_name;
    for (CalledFunction& function : BuildCallGraph(*profile)) {
      by_name.emplace(NameOf(function.key), std::move(function));
    }
    return by_name;
  }
  std::string NameOf(FunctionId id) {
    const Tables& tables = recording_.tables();
    return tables.text(tables.function(id).name);
  }

  MemoryRecording recording_;
  uint64_t time_ns_ = 0;
};

TEST_F(CallGraphTest, WaysToAFunctionAreAddedUpByCaller) {
  Call(1, {{"main"}}, 1, 10);
  Call(1, {{"main"}, {"a"}}, 3, 20);
  Call(1, {{"main"}, {"a"}, {"b"}}, 5, 40);
  Call(2, {{"b"}}, 7, 80);
  auto graph = Graph();
  ASSERT_EQ(graph.size(), 3U);
  EXPECT_EQ(graph["main"].sums.total.wall_ns, 70U);
  EXPECT_EQ(graph["a"].sums.total.wall_ns, 60U);
  const CalledFunction& b = graph["b"];
  EXPECT_EQ(b.sums.self.samples, 12U);
  EXPECT_EQ(b.sums.total.wall_ns, 120U);
  EXPECT_EQ(b.sums.total.cpu_ns, 60U);
  ASSERT_EQ(b.callers.size(), 2U);
  for (const auto& caller : b.callers) {
    EXPECT_EQ(caller.sums.self.samples, caller.key ? 5U : 7U);
  }
}

TEST_F(CallGraphTest, RecursionIsNotCountedTwice) {
  Call(1, {{"f"}}, 1, 1);
  Call(1, {{"f"}, {"f"}}, 2, 10);
  Call(1, {{"f"}, {"f"}, {"g"}}, 4, 100);
  Call(1, {{"f"}, {"f"}, {"g"}, {"f"}}, 8, 1000);
  auto graph = Graph();
  const CallSums& f = graph["f"].sums;
  EXPECT_EQ(f.self.samples, 11U);
  EXPECT_EQ(f.recursive, 10U);
  EXPECT_EQ(f.total.wall_ns, 1111U);
  EXPECT_EQ(f.self.wall_ns, 1011U);
  std::map<std::string, CallSums> by_caller;
  for (const auto& caller : graph["f"].callers) {
    by_caller[caller.key ? NameOf(*caller.key) : ""] = caller.sums;
  }
  EXPECT_EQ(by_caller["f"].total.wall_ns, 1110U);
  EXPECT_EQ(by_caller["f"].self.samples, 2U);
  EXPECT_EQ(by_caller["g"].total.wall_ns, 1000U);
  EXPECT_EQ(by_caller[""].self.samples, 1U);
}

TEST_F(CallGraphTest, DeepStacksNeedNoneOfOurs) {
  Tables& tables = recording_.mutable_tables();
  const FrameId frame = testing::MakeFrame(tables, {"down"});
  StackId stack = kEmptyStack;
  for (int i = 0; i < 300'000; ++i) stack = tables.Push(stack, frame);
  recording_.Add({.time_ns = 5,
                  .wall_ns = 5,
                  .thread = MakeThread(tables, 1, "thread"),
                  .stack = stack,
                  .count = 1});
  EXPECT_EQ(Graph()["down"].sums.total.wall_ns, 5U);
}

// As of a helper, or of len() with --builtins. A search through them for each call would not end.
TEST_F(CallGraphTest, AFunctionMayHaveManyCallers) {
  constexpr int kCallers = 200'000;
  Tables& tables = recording_.mutable_tables();
  const FrameId helper = testing::MakeFrame(tables, {"helper"});
  const ThreadIndex thread = MakeThread(tables, 1, "thread");
  for (int i = 0; i < kCallers; ++i) {
    const FrameId caller = testing::MakeFrame(tables, {fmt::format("caller {}", i)});
    recording_.Add({.time_ns = i + 1,
                    .wall_ns = 1,
                    .thread = thread,
                    .stack = tables.Push(tables.Push(kEmptyStack, caller), helper),
                    .count = 1});
  }
  EXPECT_EQ(Graph()["helper"].callers.size(), size_t{kCallers});
}

}  // namespace
}  // namespace pystrobe
