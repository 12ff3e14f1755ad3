// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "sampler/remote/native_stacks.h"
#include "sampler/remote/ptrace_stop.h"
#include "tests/cpp/support/python_program.h"

namespace pystrobe::remote {
namespace {

using native::MergeResult;

constexpr Nanoseconds kLong = std::chrono::minutes(1);

/// A thread of Python that stands in zlib, called by one Python function.
class UnwinderTest : public ::testing::Test {
 protected:
  UnwinderTest() {
    EXPECT_EQ(program_.Read(1), "r");
    // It is in C from a moment later on, but for a microsecond every ten milliseconds.
    usleep(20'000);
    for (int tries = 0; !target_ && tries < 100; ++tries) target_ = Target::Open(program_.pid());
  }
  void SetUp() override { ASSERT_TRUE(target_) << target_.error().message; }

  NativeCopy Copy() {
    StoppedStack stack;
    PtraceStop stop;
    EXPECT_TRUE(stop.Stop(program_.pid()));
    EXPECT_TRUE(stack.Take(program_.pid(), target_->memory()));
    return stack.Release();
  }

  pystrobe::testing::PythonProgram program_{
      "import zlib\n"
      "data = bytes(range(256)) * 400000\n"
      "print('r', flush=True)\n"
      "while True: zlib.crc32(data)\n"};
  Result<Target> target_ = Target::Open(program_.pid());
};

class NativeStacksTest : public UnwinderTest {
 protected:
  std::unique_ptr<NativeStacks> Start(size_t room = NativeStacks::kMostBytes) {
    return NativeStacks::Start(*target_, tables_, quality_, room).value();
  }

  Tables tables_;
  Quality quality_;
  const FrameId frame_ = tables_.Intern(Frame{
      tables_.Intern(Function{tables_.Intern("<module>"), tables_.Intern("<string>"), 1}), 4});
};

TEST_F(UnwinderTest, FindsTheCallsAndTheirNamesOnce) {
  auto unwinder = Unwinder::Start(*target_);
  ASSERT_TRUE(unwinder);
  // The module's code is in one frame of Python.
  (*unwinder)->Submit({ThreadIndex{}, Copy(), {1}});
  (*unwinder)->Submit({ThreadIndex{}, Copy(), {1}});
  EXPECT_EQ((*unwinder)->Wait(kLong), 0U);
  const auto done = (*unwinder)->TakeDone();
  ASSERT_EQ(done.size(), 2U);
  for (const UnwoundStack& stack : done) {
    EXPECT_EQ(stack.result, MergeResult::kWhole);
    EXPECT_GT(stack.instructions.size(), 3U);
    EXPECT_EQ(std::ranges::count(stack.frames, false, &native::MergedFrame::is_native), 1);
  }
  std::set<Address> shown, told;
  for (const native::MergedFrame& frame : done[0].frames) {
    if (frame.is_native) shown.insert(done[0].instructions[frame.index]);
  }
  for (const auto& [instruction, place] : done[0].places) told.insert(instruction);
  EXPECT_FALSE(shown.empty());
  EXPECT_EQ(shown, told);
  for (const auto& [instruction, place] : done[1].places) EXPECT_FALSE(told.contains(instruction));
  EXPECT_TRUE((*unwinder)->TakeDone().empty());
}

TEST_F(NativeStacksTest, NoMoreWaitThanThereIsRoomFor) {
  const NativeCopy copy = Copy();
  const auto stacks = Start(3 * copy.bytes.size());
  // The first needs the interpreter's file to be read.
  int waiting = 0;
  while (waiting < 10 && !NativeStacks::IsMade(stacks->Add(ThreadIndex{}, kEmptyStack, {}, copy)))
    ++waiting;
  EXPECT_EQ(waiting, 2);
  EXPECT_EQ(quality_.native_cut, 1U);
  EXPECT_EQ(stacks->Wait(kLong), 0U);
  stacks->Make();
  EXPECT_FALSE(NativeStacks::IsMade(stacks->Add(ThreadIndex{}, kEmptyStack, {}, copy)));
}

TEST_F(NativeStacksTest, AStackStandsForItselfUntilItIsMade) {
  const auto stacks = Start();
  const std::vector<NamedFrame> frames = {{frame_, true}};
  const StackId first = stacks->Add(ThreadIndex{}, kEmptyStack, frames, Copy());
  const StackId second = stacks->Add(ThreadIndex{}, kEmptyStack, frames, Copy());
  const StackId without = stacks->Add(ThreadIndex{}, kEmptyStack, frames, {});
  EXPECT_FALSE(NativeStacks::IsMade(first));
  EXPECT_EQ(stacks->Made(first), first);
  // What has nothing to be unwound is what Python told.
  EXPECT_EQ(without, tables_.Push(kEmptyStack, frame_));
  EXPECT_EQ(quality_.native_cut, 1U);
  EXPECT_EQ(stacks->Wait(kLong), 0U);
  stacks->Make();
  for (const StackId made : {stacks->Made(first), stacks->Made(second)}) {
    ASSERT_TRUE(NativeStacks::IsMade(made));
    std::vector<std::string> names;
    for (const FrameId id : tables_.FramesOf(made)) {
      names.push_back(tables_.text(tables_.function(tables_.frame(id).function).name));
    }
    EXPECT_EQ(names.front(), "<module>");
    EXPECT_GT(names.size(), 1U) << "no C function";
  }
  stacks->Forget();
  const StackId third = stacks->Add(ThreadIndex{}, kEmptyStack, frames, Copy());
  EXPECT_EQ(stacks->Made(third), third);
  EXPECT_EQ(stacks->Wait(kLong), 0U);
  stacks->Make();
  EXPECT_TRUE(NativeStacks::IsMade(stacks->Made(third)));
}

TEST_F(NativeStacksTest, WhatIsNotWaitedForIsMadeOfPythonFrames) {
  const auto stacks = Start();
  const NativeCopy copy = Copy();
  std::vector<StackId> waiting;
  // The first needs the interpreter's file to be read.
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(stacks->Add(ThreadIndex{}, kEmptyStack, {{frame_, true}}, copy));
  }
  EXPECT_GT(stacks->Wait(Nanoseconds(0)), 0U);
  stacks->MakeWithoutWaiting();
  EXPECT_GT(quality_.native_cut, 0U);
  EXPECT_EQ(stacks->Made(waiting.back()), tables_.Push(kEmptyStack, frame_));
  for (const StackId stack : waiting) EXPECT_TRUE(NativeStacks::IsMade(stacks->Made(stack)));
  // What was under way meanwhile is nobody's.
  stacks->Forget();
  const StackId next = stacks->Add(ThreadIndex{}, kEmptyStack, {{frame_, true}}, copy);
  EXPECT_EQ(stacks->Wait(kLong), 0U);
  stacks->Make();
  EXPECT_GT(tables_.FramesOf(stacks->Made(next)).size(), 1U) << "no C function";
}

}  // namespace
}  // namespace pystrobe::remote
