// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/analyze/profile.h"
#include "tests/cpp/support/memory_recording.h"

namespace pystrobe {
namespace {

using ::testing::ElementsAre;
using testing::FrameSpec;
using testing::MakeFrame;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

class FunctionTableTest : public ::testing::Test {
 protected:
  FunctionTableTest() { thread_ = MakeThread(tables(), 1, "MainThread"); }

  Tables& tables() { return recording_.mutable_tables(); }

  void Add(StackId stack, uint64_t wall, uint64_t cpu) {
    recording_.Add(
        {.time_ns = 1, .wall_ns = wall, .cpu_ns = cpu, .thread = thread_, .stack = stack});
  }
  void Add(std::initializer_list<FrameSpec> frames, uint64_t wall, uint64_t cpu) {
    Add(MakeStack(tables(), frames), wall, cpu);
  }

  std::vector<FunctionRow> Table(Mode mode) {
    profile_ = Fold(recording_, {}).value();
    return FunctionTable(profile_, mode);
  }

  std::vector<std::string> Names(Mode mode) {
    std::vector<std::string> names;
    for (const FunctionRow& row : Table(mode)) {
      names.push_back(tables().text(tables().function(row.function).name));
    }
    return names;
  }

  MemoryRecording recording_;
  ThreadIndex thread_{};
  Profile profile_;
};

TEST_F(FunctionTableTest, SelfGoesToTheLeafAndTotalToAllAbove) {
  Add({{"main", 1}, {"f", 2}}, 30, 20);
  Add({{"main", 3}}, 5, 4);
  const std::vector<FunctionRow> rows = Table(Mode::kWall);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(tables().text(tables().function(rows[0].function).name), "f");
  EXPECT_EQ(rows[0].self.wall_ns, 30U);
  EXPECT_EQ(rows[0].total.wall_ns, 30U);
  EXPECT_EQ(rows[1].self.wall_ns, 5U);
  EXPECT_EQ(rows[1].total.wall_ns, 35U);
  EXPECT_EQ(rows[1].total.cpu_ns, 24U);
  EXPECT_EQ(rows[1].total.samples, 2U);
}

TEST_F(FunctionTableTest, RecursionIsCountedOnce) {
  Add({{"main"}, {"fib", 2}, {"fib", 2}, {"fib", 3}}, 10, 10);
  Add({{"main"}, {"fib", 2}, {"other"}, {"fib", 2}}, 7, 7);
  for (const FunctionRow& row : Table(Mode::kWall)) {
    const std::string& name = tables().text(tables().function(row.function).name);
    if (name == "other") {
      EXPECT_EQ(row.total.wall_ns, 7U);
    } else {
      EXPECT_EQ(row.total.wall_ns, 17U) << name;
    }
    if (name == "fib") {
      EXPECT_EQ(row.self.wall_ns, 17U);
      EXPECT_EQ(row.hottest_line, 3U) << "10 of the 17 ns were on line 3";
    }
  }
}

TEST_F(FunctionTableTest, ThreadsAreAddedUp) {
  const StackId stack = MakeStack(tables(), {{"f"}});
  Add(stack, 10, 10);
  thread_ = MakeThread(tables(), 2, "other");
  Add(stack, 5, 5);
  const std::vector<FunctionRow> rows = Table(Mode::kWall);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].self.wall_ns, 15U);
}

TEST_F(FunctionTableTest, HottestLineFollowsTheMode) {
  Add({{"f", 10}}, 100, 1);
  Add({{"f", 20}}, 10, 9);
  EXPECT_EQ(Table(Mode::kWall)[0].hottest_line, 10U);
  EXPECT_EQ(Table(Mode::kCpu)[0].hottest_line, 20U);
}

TEST_F(FunctionTableTest, HottestLineOfACallerIsItsBusiestCall) {
  Add({{"main", 10}, {"f"}}, 1, 1);
  Add({{"main", 20}, {"f"}}, 3, 3);
  Add({{"main", 30}, {"f"}}, 2, 2);
  const std::vector<FunctionRow> rows = Table(Mode::kWall);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].hottest_line, 20U);
}

TEST_F(FunctionTableTest, OrderIsBySelfThenTotalThenName) {
  Add({{"b"}}, 5, 5);
  Add({{"a"}}, 5, 5);
  Add({{"main"}, {"c"}}, 5, 9);
  Add({{"main"}, {"d"}, {"c"}}, 1, 0);
  EXPECT_THAT(Names(Mode::kWall), ElementsAre("c", "a", "b", "main", "d"));
  EXPECT_THAT(Names(Mode::kCpu), ElementsAre("c", "a", "b", "main", "d"));
}

TEST_F(FunctionTableTest, FunctionsThatWereNotSeenAreLeftOut) {
  MakeStack(tables(), {{"never"}});
  Add({{"f"}}, 1, 1);
  Add(kEmptyStack, 1, 1);
  EXPECT_THAT(Names(Mode::kWall), ElementsAre("f"));
}

TEST_F(FunctionTableTest, DeepRecursionAndManyStacksAreSummedRight) {
  // Each depth of a 1000-deep recursion is a stack of its own, and 100 callees hang on each.
  const FrameId recursive = MakeFrame(tables(), {"recursive", 7});
  std::vector<FrameId> leaves;
  for (uint32_t line = 1; line <= 100; ++line) {
    leaves.push_back(MakeFrame(tables(), {"leaf", line}));
  }
  StackId stack = kEmptyStack;
  for (int depth = 0; depth < 1000; ++depth) {
    stack = tables().Push(stack, recursive);
    for (FrameId leaf : leaves) Add(tables().Push(stack, leaf), 2, 1);
  }
  const std::vector<FunctionRow> rows = Table(Mode::kWall);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].self.wall_ns, 200'000U);
  EXPECT_EQ(rows[1].self.wall_ns, 0U);
  EXPECT_EQ(rows[1].total.wall_ns, 200'000U);
  EXPECT_EQ(rows[1].hottest_line, 7U);
}

// Of equal times: to compare such names for each pair of functions would take hours.
TEST_F(FunctionTableTest, ManyFunctionsMayHaveOneLongName) {
  constexpr uint32_t kFunctions = 300'000;
  const std::string same(1 << 20, 'x');
  const StringId names[] = {tables().Intern(same + "b"), tables().Intern(same + "a")};
  for (uint32_t i = 0; i < kFunctions; ++i) {
    const FunctionId function = tables().Intern(Function{names[i % 2], kEmptyString, i});
    Add(tables().Push(kEmptyStack, tables().Intern(Frame{function, i})), 5, 0);
  }
  const std::vector<FunctionRow> rows = Table(Mode::kWall);
  ASSERT_EQ(rows.size(), kFunctions);
  EXPECT_EQ(ToIndex(rows[0].function), 1U);
  EXPECT_EQ(ToIndex(rows[1].function), 3U);
  EXPECT_EQ(ToIndex(rows[kFunctions / 2].function), 0U);
  const CallTree tree = BuildCallTree(tables(), profile_.threads, Mode::kWall);
  EXPECT_EQ(ToIndex(tree.nodes[tree.nodes[0].children[0]].function), 1U);
}

}  // namespace
}  // namespace pystrobe
