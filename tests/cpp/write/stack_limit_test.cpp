// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/stack_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::HasSubstr;
using testing::MemoryRecording;

/// A recursion, and a sample of each stack on the way down.
void AddRecursion(MemoryRecording& recording, uint32_t depth, const std::string& name) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex thread = testing::MakeThread(tables, 1, "MainThread");
  const FrameId frame = testing::MakeFrame(tables, {name, 1});
  StackId stack = kEmptyStack;
  for (uint32_t i = 1; i <= depth; ++i) {
    stack = tables.Push(stack, frame);
    recording.Add({.time_ns = i, .wall_ns = 1, .cpu_ns = 1, .thread = thread, .stack = stack});
  }
}

Result<void> WriteAs(Format format, const MemoryRecording& recording, std::string& text) {
  const auto profile = Fold(recording, {.include_idle = true});
  testing::StringOutput output;
  auto written = Write(format, *profile, {}, output);
  text = output.text;
  return written;
}

// A file of some kilobytes holds that many stacks.
TEST(StackLimitTest, WhatWouldListTooManyFramesIsRefusedBeforeItIsBegun) {
  MemoryRecording recording;
  AddRecursion(recording, 1 << 18, "f");
  for (const Format format :
       {Format::kCollapsed, Format::kPprof, Format::kJson, Format::kSpeedscope}) {
    std::string text;
    const auto written = WriteAs(format, recording, text);
    ASSERT_FALSE(written.has_value()) << FormatName(format);
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(written.error().message, HasSubstr("come to 34,359,869,440 frames in all"));
    EXPECT_THAT(written.error().hint, HasSubstr("-o NAME.html"));
    EXPECT_EQ(text, "");
  }
  std::string page;
  EXPECT_TRUE(WriteAs(Format::kHtml, recording, page)) << "which has each frame once";
}

TEST(StackLimitTest, SoIsTextOfLongNames) {
  MemoryRecording recording;
  AddRecursion(recording, 1 << 12, std::string(1 << 16, 'x'));
  std::string text;
  const auto written = WriteAs(Format::kCollapsed, recording, text);
  ASSERT_FALSE(written.has_value());
  EXPECT_THAT(written.error().message, HasSubstr(" bytes in all, more than 274,877,906,944"));
  EXPECT_EQ(text, "");
}

TEST(StackLimitTest, DeepRecursionsAreWritten) {
  MemoryRecording recording;
  AddRecursion(recording, 2000, "f");
  for (const Format format :
       {Format::kCollapsed, Format::kPprof, Format::kJson, Format::kSpeedscope}) {
    std::string text;
    EXPECT_TRUE(WriteAs(format, recording, text)) << FormatName(format);
    EXPECT_NE(text, "");
  }
}

}  // namespace
}  // namespace pystrobe::write
