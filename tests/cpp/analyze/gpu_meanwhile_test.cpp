// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_meanwhile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/units.h"

namespace pystrobe {
namespace {

using testing::kMs;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

// Of CLOCK_MONOTONIC, as the recording begins.
constexpr int64_t kStart = 5'000 * kMs;

class GpuMeanwhileTest : public ::testing::Test {
 protected:
  GpuMeanwhileTest() { recording_.mutable_metadata().start_monotonic_ns = kStart; }

  Tables& tables() { return recording_.mutable_tables(); }
  // Since the start.
  void Gap(int64_t begin_ms, int64_t end_ms, uint32_t tid = 100) {
    record_.gaps.push_back(
        {.begin_ns = kStart + begin_ms * kMs, .end_ns = kStart + end_ms * kMs, .tid = tid});
  }
  void Look(int64_t end_ms, uint64_t wall_ms, uint64_t cpu_ms, ThreadIndex thread, StackId stack,
            uint8_t flags = 0) {
    recording_.Add({.time_ns = end_ms * kMs,
                    .wall_ns = wall_ms * kMs,
                    .cpu_ns = cpu_ms * kMs,
                    .thread = thread,
                    .stack = stack,
                    .flags = flags});
  }
  GpuMeanwhile Found() {
    record_.idles = {{.cause = GpuIdleCause::kHost}};
    recording_.SetGpu(record_);
    return *MakeGpuMeanwhile(recording_);
  }
  uint64_t LineOf(const MeanwhileRow& row) { return row.line ? tables().frame(*row.line).line : 0; }

  MemoryRecording recording_;
  GpuRecord record_;
  ThreadIndex launcher_ = MakeThread(tables(), 100, "MainThread");
  ThreadIndex other_ = MakeThread(tables(), 101, "other");
  StackId load_ = MakeStack(tables(), {{"train", 7}, {"load", 3}});
  StackId wait_ = MakeStack(tables(), {{"train", 8}, {"wait", 9}});
};

TEST_F(GpuMeanwhileTest, IsWhatThatThreadWasAtInTheGaps) {
  Gap(10, 20);
  Gap(40, 50);
  Look(15, 10, 8, launcher_, load_);  // half of it in the gap
  Look(45, 30, 3, launcher_, wait_);  // 5 of the first, 5 of the second
  Look(50, 5, 0, launcher_, wait_);
  Look(60, 10, 10, launcher_, load_);
  Look(20, 20, 20, other_, load_);
  const GpuMeanwhile found = Found();
  EXPECT_EQ(found.gaps_ns, 20U * kMs);
  EXPECT_EQ(found.wall_ns, 20U * kMs);
  EXPECT_EQ(found.cpu_ns, 5U * kMs);
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_EQ(LineOf(found.rows[0]), 9U);
  EXPECT_EQ(found.rows[0].wall_ns, 15U * kMs);
  EXPECT_EQ(found.rows[0].cpu_ns, 1U * kMs);
  EXPECT_EQ(LineOf(found.rows[1]), 3U);
  EXPECT_EQ(found.rows[1].wall_ns, 5U * kMs);
  EXPECT_EQ(found.rows[1].cpu_ns, 4U * kMs);
}

TEST_F(GpuMeanwhileTest, BySignalsItIsTheCpuTimeThatEndsThere) {
  recording_.mutable_metadata().pause_mode = kBySignals;
  Gap(10, 20);
  for (const int64_t ms : {9, 10, 15, 20, 21}) Look(ms, 0, 1, launcher_, load_);
  const GpuMeanwhile found = Found();
  EXPECT_EQ(found.wall_ns, 0U);
  EXPECT_EQ(found.cpu_ns, 2U * kMs) << "an end is not in it";
}

TEST_F(GpuMeanwhileTest, TwoDevicesThatIdleAtOnceAreOneTime) {
  Gap(10, 20);
  Gap(15, 30);
  Gap(5, 12);
  Look(40, 40, 0, launcher_, load_);
  const GpuMeanwhile found = Found();
  EXPECT_EQ(found.gaps_ns, 25U * kMs);
  EXPECT_EQ(found.wall_ns, 25U * kMs);
}

TEST_F(GpuMeanwhileTest, WhereNobodyLookedNothingIsSaid) {
  Gap(10, 20);
  Look(20, 10, 0, launcher_, kEmptyStack, kSampleUnseen);
  EXPECT_TRUE(Found().rows.empty());
  Look(20, 10, 1, launcher_, kEmptyStack);
  const GpuMeanwhile found = Found();
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_FALSE(found.rows[0].line);
}

TEST_F(GpuMeanwhileTest, CallsTellNoMoments) {
  recording_.mutable_metadata().pause_mode = kByTracing;
  Gap(10, 20);
  Look(20, 10, 1, launcher_, load_);
  EXPECT_TRUE(Found().rows.empty());
  EXPECT_EQ(Found().gaps_ns, 10U * kMs);
}

}  // namespace
}  // namespace pystrobe
