// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace pystrobe::gpu {
namespace {

constexpr uint32_t kRoot = RangeNodes::kNone;

TEST(RangeNodes, AreOneByParentDomainAndName) {
  auto nodes = *RangeNodes::Make();
  const uint32_t a = nodes.FindOrAdd(kRoot, 0, "a");
  EXPECT_EQ(a, 1U);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, std::string("a")), a);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "b"), 2U);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 1, "a"), 3U);
  EXPECT_EQ(nodes.FindOrAdd(a, 0, "a"), 4U);
  EXPECT_EQ(nodes[4].parent, a);
  EXPECT_EQ(*nodes[4].name, "a");
  EXPECT_EQ(nodes[3].domain, 1U);
}

TEST(RangeNodes, WhatThereIsNoRoomForHasOneNameTogether) {
  auto nodes = *RangeNodes::Make();
  nodes.Clear(3);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "a"), 1U);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "b"), 2U);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "c"), RangeNodes::kOther);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "b"), 2U);
  EXPECT_EQ(nodes.FindOrAdd(2, 3, RangeNodes::kOtherName), RangeNodes::kOther);
  EXPECT_EQ(nodes[RangeNodes::kOther].parent, kRoot);
  nodes.Count(RangeNodes::kOther);
  nodes.AddTime(RangeNodes::kOther, 5);
  nodes.Clear(3);
  EXPECT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[RangeNodes::kOther].count, 0U);
  EXPECT_EQ(nodes[RangeNodes::kOther].host_ns, 0U);
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "c"), 1U);
}

TEST(RangeNodes, AllOfThemAreFoundAgain) {
  auto nodes = *RangeNodes::Make();
  for (size_t i = 1; i < RangeNodes::kMaxNodes; ++i) {
    ASSERT_EQ(nodes.FindOrAdd(kRoot, 0, std::to_string(i)), i);
  }
  EXPECT_EQ(nodes.FindOrAdd(kRoot, 0, "one more"), RangeNodes::kOther);
  for (size_t i = 1; i < RangeNodes::kMaxNodes; ++i) {
    ASSERT_EQ(nodes.FindOrAdd(kRoot, 0, std::to_string(i)), i);
  }
}

TEST(RangeNodes, ThreadsMakeEachOnce) {
  auto nodes = *RangeNodes::Make();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        const uint32_t node = nodes.FindOrAdd(kRoot, 0, std::to_string(i % 500));
        nodes.Count(node);
        nodes.AddTime(node, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(nodes.size(), 501U);
  for (uint32_t i = 1; i <= 500; ++i) {
    EXPECT_EQ(nodes[i].count, 16U);
    EXPECT_EQ(nodes[i].host_ns, 32U);
  }
}

}  // namespace
}  // namespace pystrobe::gpu
