// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/call_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

TEST(CallTree, AFunctionHasOneNodeForEachWayToIt) {
  CallTree tree;
  std::vector<Key> made;
  const auto note = [&made](Key key) {
    made.push_back(key);
    return true;
  };
  CallNode& a = *tree.ChildOf(tree.root(), KeyOf(0), note);
  CallNode& b = *tree.ChildOf(a, KeyOf(1), note);
  EXPECT_EQ(tree.ChildOf(tree.root(), KeyOf(0), note), &a);
  EXPECT_EQ(tree.ChildOf(a, KeyOf(1), note), &b);
  CallNode& b_alone = *tree.ChildOf(tree.root(), KeyOf(1), note);
  EXPECT_NE(&b_alone, &b);
  EXPECT_EQ(b.parent, &a);
  EXPECT_EQ(b_alone.parent, &tree.root());
  EXPECT_EQ(made, (std::vector{KeyOf(0), KeyOf(1), KeyOf(1)}));
}

TEST(CallTree, WhatComesInTheSameOrderAgainIsExpected) {
  CallTree tree;
  const auto admit = [](Key) { return true; };
  CallNode& root = tree.root();
  EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(0)), nullptr);
  std::vector<CallNode*> loop;
  for (size_t i = 0; i < 3; ++i) loop.push_back(tree.ChildOf(root, KeyOf(i), admit));
  EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(0)), nullptr) << "that the loop begins again";
  tree.ChildOf(root, KeyOf(0), admit);
  for (int round = 0; round < 2; ++round) {
    for (const size_t i : {1U, 2U, 0U}) {
      EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(i)), loop[i]);
      EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(i)), loop[i]) << "and the last one";
    }
  }
  EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(2)), nullptr);
  EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(7)), nullptr);
  EXPECT_EQ(CallTree::ChildAgain(root, KeyOf(0)), loop[0]) << "nor was anything entered";
}

TEST(CallTree, WhatIsNotAdmittedHasNoNode) {
  CallTree tree;
  EXPECT_EQ(tree.ChildOf(tree.root(), KeyOf(0), [](Key) { return false; }), nullptr);
  EXPECT_EQ(tree.nodes().size(), 1U);
}

// Around the number from which on children are found by their hash.
class ManyChildrenTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ManyChildrenTest, AreEachFoundAgain) {
  CallTree tree;
  const auto admit = [](Key) { return true; };
  std::vector<CallNode*> nodes;
  for (size_t i = 0; i < GetParam(); ++i) {
    nodes.push_back(tree.ChildOf(tree.root(), KeyOf(i), admit));
    tree.ChildOf(*nodes[i], KeyOf(i), admit);  // the same key elsewhere
  }
  for (size_t i = 0; i < GetParam(); ++i) {
    EXPECT_EQ(tree.ChildOf(tree.root(), KeyOf(i), admit), nodes[i]) << i;
  }
  EXPECT_EQ(std::set(nodes.begin(), nodes.end()).size(), GetParam());
  EXPECT_EQ(tree.nodes().size(), 2 * GetParam() + 1);
  EXPECT_EQ(tree.root().child_count, GetParam());
}

INSTANTIATE_TEST_SUITE_P(CallTree, ManyChildrenTest, ::testing::Values(1, 7, 8, 9, 10, 1000));

TEST(CallTree, WhatNoChildHasIsItsOwn) {
  CallTree tree;
  const auto admit = [](Key) { return true; };
  CallNode& outer = *tree.ChildOf(tree.root(), KeyOf(0), admit);
  outer.total = 100;
  outer.off_cpu = 50;
  CallNode& inner = *tree.ChildOf(outer, KeyOf(1), admit);
  inner.total = 60;
  inner.off_cpu = 45;
  EXPECT_EQ(outer.self(), 40U);
  EXPECT_EQ(outer.self_cpu(), 35U);
  EXPECT_EQ(inner.self(), 60U);
  EXPECT_EQ(inner.self_cpu(), 15U);
}

TEST(CallTree, WhatIsDroppedGoesWithAllBelowItAndLeavesItsTimeToItsCaller) {
  CallTree tree;
  const auto admit = [](Key) { return true; };
  CallNode& outer = *tree.ChildOf(tree.root(), KeyOf(0), admit);
  outer.total = 100;
  CallNode& kept = *tree.ChildOf(outer, KeyOf(1), admit);
  kept.total = 10;
  CallNode& dropped = *tree.ChildOf(outer, KeyOf(2), admit);
  dropped.total = 50;
  CallNode& below = *tree.ChildOf(dropped, KeyOf(1), admit);
  below.total = 40;
  for (int again = 0; again < 2; ++again) {
    tree.Drop([](const CallNode& node) { return node.key == KeyOf(2); });
    EXPECT_EQ(outer.self(), 90U);
    EXPECT_EQ(outer.first_child, &kept);
    EXPECT_EQ(kept.next_sibling, nullptr);
    EXPECT_EQ(dropped.key, nullptr);
    EXPECT_EQ(below.key, nullptr);
    EXPECT_EQ(kept.key, KeyOf(1));
  }
}

// Calls of random length, of which some waited; that is found out at the next event that looks, as
// it is of a CPU that a hypervisor took away.
TEST(CallTree, NoCallsHaveMoreCpuTimeThanWhatCalledThem) {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    CallTree tree;
    Ticks now = 0, waited = 0, found = 0;
    struct Open {
      CallNode* node;
      Ticks begin, found_before;
    };
    std::vector<Open> open;
    const auto leave = [&] {
      const auto [node, begin, found_before] = open.back();
      open.pop_back();
      node->total += now - begin;
      node->off_cpu += std::min(now - begin, found - found_before);
    };
    for (int event = 0; event < 300; ++event) {
      const Ticks step = 1 + random() % 50;
      now += step;
      if (random() % 20 == 0) {
        now += 1000;
        waited += 1000;
      }
      if (random() % 10 == 0) found = waited;
      if (!open.empty() && random() % 2 == 0) {
        leave();
        continue;
      }
      CallNode& parent = open.empty() ? tree.root() : *open.back().node;
      open.push_back(
          {tree.ChildOf(parent, KeyOf(random() % 3), [](Key) { return true; }), now, found});
    }
    while (!open.empty()) leave();

    tree.SettleCpu(now - waited);

    Ticks all = 0;
    for (const CallNode& node : tree.nodes()) {
      if (node.parent == nullptr) continue;
      EXPECT_LE(node.off_cpu, node.total);
      Ticks below = 0;
      for (const CallNode* child = node.first_child; child != nullptr; child = child->next_sibling)
        below += child->cpu();
      EXPECT_LE(below, node.cpu());
      EXPECT_EQ(node.self_cpu(), node.cpu() - below);
      all += node.self_cpu();
    }
    EXPECT_LE(all, now - waited);
  }
}

TEST(CallTree, WhatIsTakenOffIsInProportion) {
  CallTree tree;
  const auto admit = [](Key) { return true; };
  CallNode& caller = *tree.ChildOf(tree.root(), KeyOf(0), admit);
  CallNode& first = *tree.ChildOf(caller, KeyOf(1), admit);
  CallNode& second = *tree.ChildOf(caller, KeyOf(2), admit);
  CallNode& fits = *tree.ChildOf(second, KeyOf(3), admit);
  caller.total = 5000;
  caller.off_cpu = 3500;
  first.total = 2000;
  second.total = 1000;
  fits.total = 100;
  tree.SettleCpu(2000);
  EXPECT_EQ(caller.cpu(), 1500U);
  EXPECT_EQ(first.cpu(), 1000U);
  EXPECT_EQ(second.cpu(), 500U);
  EXPECT_EQ(fits.cpu(), 100U);
  EXPECT_EQ(caller.self_cpu(), 0U);
}

}  // namespace
}  // namespace pystrobe::trace
