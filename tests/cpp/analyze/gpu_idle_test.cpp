// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_idle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cpp/support/memory_recording.h"

namespace pystrobe {
namespace {

using testing::MakeStack;
using testing::MemoryRecording;

class GpuIdleTest : public ::testing::Test {
 protected:
  Tables& tables() { return recording_.mutable_tables(); }
  GpuIdleTable Table() {
    recording_.SetGpu(record_);
    return MakeGpuIdleTable(recording_);
  }
  // "train:12"
  std::string Name(const std::optional<FrameId>& line) {
    if (!line) return "none";
    const Frame& frame = tables().frame(*line);
    return fmt::format("{}:{}", tables().text(tables().function(frame.function).name), frame.line);
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(GpuIdleTest, WhatTheProgramDidIsInTheCallThatBothLaunchesHaveInCommon) {
  const StackId optimize =
      MakeStack(tables(), {{"<module>", 30}, {"train", 14}, {"step", 5, "optimizer.py"}});
  const StackId forward = MakeStack(
      tables(), {{"<module>", 30}, {"train", 12}, {"forward", 8}, {"step", 5, "other.py"}});
  record_.idles = {{.cause = GpuIdleCause::kHost,
                    .from = optimize,
                    .to = forward,
                    .count = 3,
                    .total_ns = 900,
                    .max_ns = 500}};
  const GpuIdleTable table = Table();
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(Name(table.rows[0].from), "train:14");
  EXPECT_EQ(Name(table.rows[0].to), "train:12");
  EXPECT_EQ(table.rows[0].count, 3U);
  EXPECT_EQ(table.rows[0].max_ns, 500U);
  EXPECT_EQ(table.by_cause[static_cast<size_t>(GpuIdleCause::kHost)], 900U);
}

TEST_F(GpuIdleTest, OneLineThatCallsTwoThingsIsTheCallThatBothHave) {
  const StackId a = MakeStack(tables(), {{"<module>", 30}, {"train", 12}, {"a", 1}});
  const StackId b = MakeStack(tables(), {{"<module>", 30}, {"train", 12}, {"b", 1}});
  const StackId other = MakeStack(tables(), {{"run", 1}});
  const auto host = [](StackId from, StackId to, uint64_t ns) {
    return GpuIdle{
        .cause = GpuIdleCause::kHost, .from = from, .to = to, .count = 1, .total_ns = ns};
  };
  record_.idles = {host(a, b, 400), host(a, a, 300), host(other, a, 200),
                   host(a, kEmptyStack, 100)};
  const GpuIdleTable table = Table();
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(Name(table.rows[0].from), "train:12");
  EXPECT_EQ(Name(table.rows[0].to), "train:12");
  EXPECT_EQ(Name(table.rows[1].from), "none");  // of two threads, or of none
  EXPECT_EQ(table.rows[1].total_ns, 300U);
  EXPECT_EQ(Name(table.rows[2].from), "a:1");
}

TEST_F(GpuIdleTest, TheRestIsOnOneLine) {
  const StackId wait = MakeStack(tables(), {{"<module>", 30}, {"item", 4}});
  const StackId launch = MakeStack(
      tables(),
      {{"<module>", 31}, {"load", 7}, {"part", 0, kRegionFile}, {"cudart", 0, "", 0, true}});
  record_.idles = {
      {.cause = GpuIdleCause::kWait, .from = wait, .to = launch, .count = 1, .total_ns = 9},
      {.cause = GpuIdleCause::kLaunches, .to = launch, .count = 1, .total_ns = 8},
      {.device = 1, .cause = GpuIdleCause::kLaunches, .to = launch, .count = 1, .total_ns = 7},
      {.cause = GpuIdleCause::kQueue, .count = 1, .total_ns = 6}};
  record_.waits = {{.stack = wait, .count = 2, .total_ns = 70, .max_ns = 60},
                   {.stack = wait, .count = 1, .total_ns = 20, .max_ns = 20},
                   {.count = 5, .total_ns = 1'000, .max_ns = 900}};
  record_.uses = {{.device = 0, .busy_ns = 10, .idle_ns = 23},
                  {.device = 1, .busy_ns = 5, .idle_ns = 7}};
  const GpuIdleTable table = Table();
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].total_ns, 15U);
  EXPECT_EQ(Name(table.rows[0].to), "load:7");
  EXPECT_EQ(Name(table.rows[1].from), "item:4");
  EXPECT_EQ(Name(table.rows[2].to), "none");
  ASSERT_EQ(table.waits.size(), 2U);
  EXPECT_EQ(Name(table.waits[0].line), "none");
  EXPECT_EQ(table.waits[1].count, 3U);
  EXPECT_EQ(table.waits[1].max_ns, 60U);
  EXPECT_EQ(table.busy_ns, 15U);
  EXPECT_EQ(table.idle_ns, 30U);
}

}  // namespace
}  // namespace pystrobe
