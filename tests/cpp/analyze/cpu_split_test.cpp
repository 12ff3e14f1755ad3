// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/analyze/profile.h"
#include "tests/cpp/support/memory_recording.h"

namespace pystrobe {
namespace {

using testing::FrameSpec;
using ::testing::IsEmpty;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

constexpr FrameSpec kInflate{"inflate", 0, "libz.so.1", 0, true};
constexpr FrameSpec kRead{"read", 0, "libc.so.6", 0, true};

class CpuSplitTest : public ::testing::Test {
 protected:
  CpuSplitTest() { thread_ = MakeThread(tables(), 1, "MainThread"); }

  Tables& tables() { return recording_.mutable_tables(); }

  void Add(std::initializer_list<FrameSpec> frames, uint64_t cpu, uint8_t flags = 0) {
    recording_.Add({.time_ns = 1,
                    .cpu_ns = cpu,
                    .thread = thread_,
                    .stack = MakeStack(tables(), frames),
                    .flags = static_cast<uint8_t>(flags | kSampleOnCpu)});
  }

  SplitTimes Split() { return SplitCpuTime(Fold(recording_, {}).value()); }
  std::string NameOf(const FunctionSplit& function) {
    return tables().text(tables().function(function.function).name);
  }

  MemoryRecording recording_;
  ThreadIndex thread_{};
};

TEST_F(CpuSplitTest, IsOfWhatRan) {
  Add({{"main", 1}}, 100);
  Add({{"main", 1}, kInflate}, 20);
  Add({{"main", 1}, kRead}, 3, kSampleKernel);
  Add({{"main", 1}}, 4, kSampleKernel);  // a page fault, say
  EXPECT_EQ(Split().total, (CpuSplit{.python_ns = 100, .native_ns = 20, .kernel_ns = 7}));
}

TEST_F(CpuSplitTest, WhatAFunctionCallsInCIsItsOwn) {
  Add({{"main", 3}, {"load", 7}}, 10);
  Add({{"main", 3}, {"load", 7}, kInflate, kRead}, 30);
  Add({{"main", 3}, {"load", 9}, kInflate}, 5);
  Add({{"main", 3}, kInflate, {"callback", 2}}, 8);
  Add({{"main", 3}, kInflate, {"callback", 2}, kRead}, 6, kSampleKernel);
  const SplitTimes times = Split();
  ASSERT_EQ(times.functions.size(), 2U) << "main has no time of its own";
  EXPECT_EQ(NameOf(times.functions[0]), "load");
  EXPECT_EQ(times.functions[0].cpu, (CpuSplit{.python_ns = 10, .native_ns = 35}));
  ASSERT_EQ(times.functions[0].lines.size(), 2U);
  EXPECT_EQ(times.functions[0].lines[0].line, 7U);
  EXPECT_EQ(times.functions[0].lines[0].cpu, (CpuSplit{.python_ns = 10, .native_ns = 30}));
  EXPECT_EQ(times.functions[0].lines[1].line, 9U);
  EXPECT_EQ(NameOf(times.functions[1]), "callback");
  EXPECT_EQ(times.functions[1].cpu, (CpuSplit{.python_ns = 8, .kernel_ns = 6}));
}

// To go up to Python from each of them would take hours.
TEST_F(CpuSplitTest, StacksOfAMillionCFunctionsAreLookedAtOnceEach) {
  constexpr uint64_t kDepth = 1'000'000;
  const FrameId frame = testing::MakeFrame(tables(), kInflate);
  StackId stack = MakeStack(tables(), {{"main", 1}});
  for (uint64_t depth = 0; depth < kDepth; ++depth) {
    stack = tables().Push(stack, frame);
    recording_.Add({.time_ns = 1, .cpu_ns = 2, .thread = thread_, .stack = stack});
  }
  const SplitTimes times = Split();
  ASSERT_EQ(times.functions.size(), 1U);
  EXPECT_EQ(times.functions[0].cpu, (CpuSplit{.native_ns = 2 * kDepth}));
}

TEST_F(CpuSplitTest, AThreadWithoutPythonIsInTheTotalOnly) {
  Add({kInflate}, 10);
  Add({}, 5);
  const SplitTimes times = Split();
  EXPECT_EQ(times.total, (CpuSplit{.native_ns = 10})) << "what the empty stack is, is not known";
  EXPECT_THAT(times.functions, IsEmpty());
}

}  // namespace
}  // namespace pystrobe
