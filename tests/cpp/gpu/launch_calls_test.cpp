// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_calls.h"

#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "gpu/launch_counts.h"

namespace pystrobe::gpu {
namespace {

TEST(LaunchCalls, AreOfTheirKind) {
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel), LaunchKind::kKernel);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz), LaunchKind::kKernel);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch), LaunchKind::kGraph);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2), LaunchKind::kCopy);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz), LaunchKind::kSet);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuEventRecord), std::nullopt);
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc), std::nullopt);
  EXPECT_EQ(KindOfLaunchCall(0), std::nullopt);
  EXPECT_EQ(KindOfLaunchCall(~0U), std::nullopt);
}

TEST(LaunchCalls, AllHaveAKind) {
  EXPECT_EQ(LaunchCallIds().size(), 10U + 2 + 48 + 12 + 24);
  for (const uint32_t id : LaunchCallIds()) EXPECT_TRUE(KindOfLaunchCall(id)) << id;
}

TEST(LaunchCalls, SomeAreWaitedForAndSomeWaitsAreNone) {
  EXPECT_TRUE(IsWaitCall(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize));
  EXPECT_TRUE(IsWaitCall(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2));
  EXPECT_FALSE(IsWaitCall(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2));
  EXPECT_FALSE(IsWaitCall(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  EXPECT_FALSE(IsWaitCall(~0U));
  EXPECT_EQ(KindOfLaunchCall(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize), std::nullopt);
  for (const uint32_t id : WaitCallIds()) EXPECT_TRUE(IsWaitCall(id)) << id;
}

TEST(LaunchCalls, CapturesBeginAndEnd) {
  EXPECT_EQ(CaptureEdgeOf(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2), CaptureEdge::kBegin);
  EXPECT_EQ(CaptureEdgeOf(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz), CaptureEdge::kEnd);
  EXPECT_EQ(CaptureEdgeOf(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel), std::nullopt);
  for (const uint32_t id : CaptureCallIds()) {
    EXPECT_TRUE(CaptureEdgeOf(id)) << id;
    EXPECT_FALSE(KindOfLaunchCall(id)) << id;
  }
}

TEST(LaunchCounts, ThreadsAddUp) {
  LaunchCounts counts;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) counts.Add(LaunchKind::kCopy);
      counts.AddFailed();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(counts.Sum().launches, ::testing::ElementsAre(0, 0, 80'000, 0));
  EXPECT_EQ(counts.Sum().failed, 8U);
  counts.Clear();
  EXPECT_THAT(counts.Sum().launches, ::testing::Each(0));
}

}  // namespace
}  // namespace pystrobe::gpu
