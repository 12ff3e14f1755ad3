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

class CallTreeTest : public ::testing::Test {
 protected:
  CallTreeTest() { thread_ = MakeThread(tables(), 1, "MainThread"); }

  Tables& tables() { return recording_.mutable_tables(); }

  void Add(std::initializer_list<FrameSpec> frames, uint64_t wall, uint64_t cpu) {
    Add(MakeStack(tables(), frames), wall, cpu);
  }
  void Add(StackId stack, uint64_t wall, uint64_t cpu) {
    recording_.Add(
        {.time_ns = 1, .wall_ns = wall, .cpu_ns = cpu, .thread = thread_, .stack = stack});
  }

  void Build(Mode mode) {
    profile_ = Fold(recording_, {}).value();
    tree_ = BuildCallTree(tables(), profile_.threads, mode);
  }

  /// The tree on one line: name:self/total(children), wall time.
  std::string Draw(uint32_t node = 0) {
    const CallTree::Node& n = tree_.nodes[node];
    std::string text = node == 0 ? "root" : tables().text(tables().function(n.function).name);
    text += fmt::format(":{}/{}", n.self.wall_ns, n.total.wall_ns);
    if (n.children.empty()) return text;
    text += "(";
    for (uint32_t child : n.children) {
      EXPECT_EQ(tree_.nodes[child].parent, node);
      EXPECT_GT(child, node);
      if (child != n.children.front()) text += " ";
      text += Draw(child);
    }
    return text + ")";
  }

  MemoryRecording recording_;
  ThreadIndex thread_{};
  Profile profile_;
  CallTree tree_;
};

TEST_F(CallTreeTest, MergesLinesAndKeepsRecursion) {
  Add({{"main", 1}, {"f", 2}}, 1, 0);
  Add({{"main", 9}, {"f", 3}, {"f", 2}}, 2, 0);
  Add({{"main", 9}}, 4, 0);
  Add(kEmptyStack, 8, 0);
  Build(Mode::kWall);
  EXPECT_EQ(Draw(), "root:8/15(main:4/7(f:1/3(f:2/2)))");
}

TEST_F(CallTreeTest, ChildrenFollowTheModeAndThenTheName) {
  Add({{"b"}}, 1, 5);
  Add({{"c"}}, 3, 1);
  Add({{"a"}}, 1, 5);
  Build(Mode::kWall);
  EXPECT_EQ(Draw(), "root:0/5(c:3/3 a:1/1 b:1/1)");
  Build(Mode::kCpu);
  EXPECT_EQ(Draw(), "root:0/5(a:1/1 b:1/1 c:3/3)");
}

TEST_F(CallTreeTest, LinesTellWhereSelfTimeAndCallsAre) {
  Add({{"f", 7}, {"g", 1}}, 1, 0);
  Add({{"f", 5}}, 2, 0);
  Add({{"f", 9}}, 3, 0);
  Add({{"f", 9}, {"g", 1}}, 4, 0);
  Build(Mode::kWall);
  const CallTree::Node& f = tree_.nodes[tree_.nodes[0].children[0]];
  std::vector<std::pair<uint32_t, uint64_t>> lines;
  for (const CallTree::Line& line : f.lines) lines.emplace_back(line.line, line.self.wall_ns);
  EXPECT_THAT(lines, ElementsAre(std::pair(5U, 2U), std::pair(7U, 0U), std::pair(9U, 3U)));
}

TEST_F(CallTreeTest, OneThreadOrAll) {
  Add({{"f"}}, 1, 9);
  thread_ = MakeThread(tables(), 2, "other");
  Add({{"f"}}, 2, 8);
  Add({{"g"}}, 4, 8);
  Build(Mode::kWall);
  EXPECT_EQ(Draw(), "root:0/7(g:4/4 f:3/3)");
  for (const ThreadProfile& thread : profile_.threads) {
    tree_ = BuildCallTree(tables(), std::span(&thread, 1), Mode::kWall);
    EXPECT_EQ(Draw(), thread.thread == thread_ ? "root:0/6(g:4/4 f:2/2)" : "root:0/1(f:1/1)");
  }
}

TEST_F(CallTreeTest, NoSamplesGiveTheRootAlone) {
  MakeStack(tables(), {{"never"}});
  Build(Mode::kWall);
  EXPECT_EQ(Draw(), "root:0/0");
}

TEST_F(CallTreeTest, DeepRecursionIsOneNodeForEachDepth) {
  const FrameId frame = MakeFrame(tables(), {"recursive"});
  StackId stack = kEmptyStack;
  for (int depth = 0; depth < 5000; ++depth) {
    stack = tables().Push(stack, frame);
    Add(stack, 1, 1);
  }
  Build(Mode::kWall);
  ASSERT_EQ(tree_.nodes.size(), 5001U);
  EXPECT_EQ(tree_.nodes[0].total.wall_ns, 5000U);
  EXPECT_EQ(tree_.nodes[5000].total.wall_ns, 1U);
}

}  // namespace
}  // namespace pystrobe
