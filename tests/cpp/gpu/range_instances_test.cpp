// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_instances.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pystrobe::gpu {
namespace {

class RangeInstancesTest : public ::testing::Test {
 protected:
  RangeInstancesTest() : instances_(*RangeInstances::Make()) { instances_.Clear(8); }
  void Pass(int count) {
    for (int i = 0; i < count; ++i) instances_.End(instances_.Begin(99, 0));
  }
  RangeInstances instances_;
};

TEST_F(RangeInstancesTest, AreFoundByWhatALaunchCarries) {
  const uint32_t outer = instances_.Begin(7, 0);
  const uint32_t inner = instances_.Begin(8, outer);
  const auto found = instances_.FindLabel(RangeInstances::LabelOf(inner));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, inner);
  EXPECT_EQ(found->node, 8U);
  EXPECT_EQ(found->parent, outer);
  EXPECT_TRUE(found->is_open);
  EXPECT_EQ(instances_.Find(outer)->node, 7U);
  instances_.End(inner);
  EXPECT_FALSE(instances_.Find(inner)->is_open);
  EXPECT_FALSE(instances_.IsOpen(inner));
  EXPECT_TRUE(instances_.IsOpen(outer));
  EXPECT_FALSE(instances_.FindLabel(0));
  EXPECT_FALSE(instances_.Find(inner + 1));
}

TEST_F(RangeInstancesTest, WhatIsOpenStaysHoweverManyComeAndGo) {
  const uint32_t outer = instances_.Begin(7, 0);
  Pass(1'000);
  ASSERT_TRUE(instances_.Find(outer));
  EXPECT_EQ(instances_.Find(outer)->node, 7U);
  instances_.End(outer);
  Pass(3);
  EXPECT_TRUE(instances_.Find(outer)) << "its work may not have been seen yet";
  Pass(20);
  EXPECT_FALSE(instances_.Find(outer));
}

TEST_F(RangeInstancesTest, WhatHasEndedIsForgottenInItsTurn) {
  const uint32_t first = instances_.Begin(7, 0);
  instances_.End(first);
  Pass(7);
  EXPECT_TRUE(instances_.Find(first));
  Pass(1);
  EXPECT_FALSE(instances_.Find(first));
}

TEST_F(RangeInstancesTest, WhereAllAreOpenThereIsNone) {
  for (int i = 0; i < 8; ++i) EXPECT_NE(instances_.Begin(7, 0), 0U);
  EXPECT_EQ(instances_.Begin(7, 0), 0U);
}

TEST_F(RangeInstancesTest, AnEndThatComesLateEndsNoOther) {
  const uint32_t first = instances_.Begin(7, 0);
  instances_.Clear(8);
  instances_.End(first);
  Pass(7);
  const uint32_t later = instances_.Begin(8, 0);
  ASSERT_EQ(later % 8, first % 8);
  instances_.End(first);
  EXPECT_TRUE(instances_.IsOpen(later));
}

TEST_F(RangeInstancesTest, NumbersThatLookLikeNoneAreLeftOut) {
  instances_.Clear();
  for (uint32_t i = 0; i < LaunchRing::kMaxRange + 10; ++i) {
    const uint32_t number = instances_.Begin(7, 0);
    ASSERT_NE(RangeInstances::LabelOf(number), 0U);
    instances_.End(number);
  }
}

// Each finds its own or none: never another's under its number.
TEST_F(RangeInstancesTest, ThreadsAtOnce) {
  instances_.Clear(64);
  std::vector<std::thread> threads;
  for (uint32_t node = 1; node <= 4; ++node) {
    threads.emplace_back([this, node] {
      for (int i = 0; i < 20'000; ++i) {
        const uint32_t number = instances_.Begin(node, node);
        const auto found = instances_.FindLabel(RangeInstances::LabelOf(number));
        if (number != 0) {
          ASSERT_TRUE(found);
          ASSERT_EQ(found->node, node);
          ASSERT_EQ(found->parent, node);
        }
        instances_.End(number);
        const auto other = instances_.Find(number + 1);
        if (other) {
          ASSERT_EQ(other->node, other->parent);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pystrobe::gpu
