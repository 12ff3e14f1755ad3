// SPDX-License-Identifier: Apache-2.0
#include "gpu/graph_nodes.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "gpu/gpu_work.h"

namespace pystrobe::gpu {
namespace {

constexpr uint64_t NodeOf(uint32_t graph, uint64_t index) { return uint64_t{graph} << 32 | index; }

void Make(GraphNodes& nodes, uint32_t graph, uint64_t count, uint32_t path) {
  for (uint64_t i = 0; i < count; ++i) nodes.Create(graph, NodeOf(graph, i), path);
}

TEST(GraphNodes, ACopyHasThePathOfItsOriginal) {
  GraphNodes nodes;
  nodes.Create(1, NodeOf(1, 0), 7);
  nodes.Create(2, NodeOf(2, 0), 8);
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 0)), 8U);
  nodes.Clone(NodeOf(2, 0), NodeOf(1, 0));
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 0)), 7U);
  EXPECT_EQ(nodes.PathOf(NodeOf(3, 0)), std::nullopt);
}

TEST(GraphNodes, ACopyOfWhatWasNotSeenHasNone) {
  GraphNodes nodes;
  nodes.Create(2, NodeOf(2, 0), 8);
  nodes.Clone(NodeOf(2, 0), NodeOf(1, 0));
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 0)), kNotCaptured);
  nodes.Clone(NodeOf(5, 0), NodeOf(2, 0));
  EXPECT_EQ(nodes.PathOf(NodeOf(5, 0)), std::nullopt);
}

TEST(GraphNodes, CopiesOfWhatWasNotSeenMakeRoomWhenTheyAreGone) {
  GraphNodes nodes(10);
  for (uint32_t graph = 2; graph < 1000; ++graph) {
    nodes.Create(graph, NodeOf(graph, 0), 8);
    nodes.Clone(NodeOf(graph, 0), NodeOf(1, 0));
    nodes.Destroy(graph);
  }
  EXPECT_EQ(nodes.size(), 10U);
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 0)), std::nullopt);
  EXPECT_EQ(nodes.PathOf(NodeOf(999, 0)), kNotCaptured);
}

TEST(GraphNodes, WhatIsGoneIsKnownWhileThereIsRoom) {
  GraphNodes nodes(10);
  Make(nodes, 1, 4, 1);
  Make(nodes, 2, 4, 2);
  nodes.Destroy(2);
  nodes.Destroy(1);
  Make(nodes, 3, 2, 3);
  EXPECT_EQ(nodes.PathOf(NodeOf(1, 0)), 1U);
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 3)), 2U);
  Make(nodes, 4, 1, 4);
  EXPECT_EQ(nodes.PathOf(NodeOf(2, 0)), std::nullopt);
  EXPECT_EQ(nodes.PathOf(NodeOf(1, 0)), 1U);
  EXPECT_EQ(nodes.PathOf(NodeOf(4, 0)), 4U);
  EXPECT_EQ(nodes.size(), 7U);
}

TEST(GraphNodes, WhatIsNotGoneMakesNoRoom) {
  GraphNodes nodes(4);
  Make(nodes, 1, 6, 1);
  nodes.Destroy(9);
  EXPECT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes.PathOf(NodeOf(1, 3)), 1U);
  EXPECT_EQ(nodes.PathOf(NodeOf(1, 4)), std::nullopt);
  nodes.Clear();
  EXPECT_EQ(nodes.size(), 0U);
  EXPECT_EQ(nodes.PathOf(NodeOf(1, 3)), std::nullopt);
}

TEST(GraphNodes, GraphsComeAndGoInThreads) {
  GraphNodes nodes(100);
  std::vector<std::thread> threads;
  for (uint32_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&nodes, thread] {
      for (uint32_t round = 0; round < 200; ++round) {
        const uint32_t graph = thread * 1000 + round;
        Make(nodes, graph, 10, thread);
        EXPECT_EQ(nodes.PathOf(NodeOf(graph, 9)).value_or(thread), thread);
        nodes.Destroy(graph);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(nodes.size(), 100U);
}

}  // namespace
}  // namespace pystrobe::gpu
