// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

CallNode& Child(CallTree& tree, CallNode& parent, char name, uint64_t calls, Ticks total,
                Ticks off_cpu = 0) {
  CallNode& node = *tree.ChildOf(parent, KeyNamed(name), [](Key) { return true; });
  node.calls = calls;
  node.total = total;
  node.off_cpu = off_cpu;
  return node;
}

const CalledFunction& RowOf(const std::vector<CalledFunction>& table, char name) {
  return *std::ranges::find(table, KeyNamed(name), &CalledFunction::key);
}

const CallSums& From(const CalledFunction& row, std::optional<Key> caller) {
  return std::ranges::find(row.callers, caller, &CalledFunction::Caller::key)->sums;
}

// a -> b -> a -> b, and b by itself.
class CallTableTest : public ::testing::Test {
 protected:
  CallTableTest() {
    CallNode& a = Child(tree_, tree_.root(), 'a', 1, 100, 20);
    CallNode& b = Child(tree_, a, 'b', 2, 80, 20);
    CallNode& a_again = Child(tree_, b, 'a', 3, 50, 10);
    Child(tree_, a_again, 'b', 6, 30, 5);
    Child(tree_, tree_.root(), 'b', 1, 7);
    const CallTree* const tree = &tree_;
    table_ = CallTable(std::span(&tree, 1));
  }

  CallTree tree_;
  std::vector<CalledFunction> table_;
};

TEST_F(CallTableTest, CallsAreAddedUpAndRecursiveOnesTold) {
  EXPECT_EQ(RowOf(table_, 'a').sums.calls, 4U);
  EXPECT_EQ(RowOf(table_, 'a').sums.recursive_calls, 3U);
  EXPECT_EQ(RowOf(table_, 'b').sums.calls, 9U);
  EXPECT_EQ(RowOf(table_, 'b').sums.recursive_calls, 6U);
}

TEST(CallTable, LivesOfCoroutinesAreAddedUpRecursiveOnesToo) {
  CallTree tree;
  CallNode& a = Child(tree, tree.root(), 'a', 2, 10);
  CallNode& a_again = Child(tree, a, 'a', 1, 5);
  a.finished = 2;
  a.lifetime = 300;
  a_again.finished = 1;
  a_again.lifetime = 100;
  const CallTree* const only = &tree;
  const auto table = CallTable(std::span(&only, 1));
  EXPECT_EQ(RowOf(table, 'a').sums.finished, 3U);
  EXPECT_EQ(RowOf(table, 'a').sums.lifetime, 400U);
  EXPECT_EQ(From(RowOf(table, 'a'), KeyNamed('a')).lifetime, 100U);
}

TEST_F(CallTableTest, TimeInItAndBelowIsThatOfTheOutermostCalls) {
  EXPECT_EQ(RowOf(table_, 'a').sums.total, 100U);
  EXPECT_EQ(RowOf(table_, 'a').sums.total_cpu, 80U);
  EXPECT_EQ(RowOf(table_, 'b').sums.total, 87U);
}

TEST_F(CallTableTest, OwnTimesComeToAllThereIs) {
  EXPECT_EQ(RowOf(table_, 'a').sums.self, 20U + 20);
  EXPECT_EQ(RowOf(table_, 'b').sums.self, 30U + 30 + 7);
  EXPECT_EQ(RowOf(table_, 'a').sums.self_cpu + RowOf(table_, 'b').sums.self_cpu, 80U + 7);
  EXPECT_EQ(table_.front().key, KeyNamed('b')) << "the most time of its own first";
}

TEST_F(CallTableTest, CallersAddUpToTheirFunction) {
  EXPECT_EQ(From(RowOf(table_, 'b'), KeyNamed('a')).calls, 8U);
  EXPECT_EQ(From(RowOf(table_, 'b'), KeyNamed('a')).recursive_calls, 6U);
  EXPECT_EQ(From(RowOf(table_, 'b'), KeyNamed('a')).total, 80U);
  EXPECT_EQ(From(RowOf(table_, 'b'), std::nullopt).calls, 1U);
  for (const CalledFunction& row : table_) {
    uint64_t calls = 0;
    Ticks self = 0;
    for (const auto& caller : row.callers) {
      calls += caller.sums.calls;
      self += caller.sums.self;
    }
    EXPECT_EQ(calls, row.sums.calls);
    EXPECT_EQ(self, row.sums.self);
  }
}

TEST(CallTable, TreesOfSeveralThreadsAreOneTable) {
  CallTree one, other;
  Child(one, one.root(), 'a', 1, 10);
  Child(other, other.root(), 'a', 2, 20);
  Child(other, other.root(), 'c', 1, 5);
  const CallTree* const trees[] = {&one, &other};
  const auto table = CallTable(trees);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(RowOf(table, 'a').sums.calls, 3U);
  EXPECT_EQ(RowOf(table, 'a').sums.total, 30U);
  EXPECT_EQ(RowOf(table, 'a').sums.recursive_calls, 0U);
}

TEST(CallTable, OfNothingIsEmpty) {
  CallTree tree;
  const CallTree* const trees[] = {&tree};
  EXPECT_TRUE(CallTable(trees).empty());
}

}  // namespace
}  // namespace pystrobe::trace
