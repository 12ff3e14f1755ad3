// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stack_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sampler/pyabi/walk.h"

namespace pystrobe::remote {
namespace {

using pyabi::Layout;
using pyabi::RawFrame;
using pyabi::StackCopy;
using pyabi::WalkResult;
using pyabi::WalkStatus;

// Owners of a frame.
constexpr uint8_t kOfThread = 0, kOfCStack = 3;

// A thread of 3.12 in memory of our own. Its evaluation loop runs twice, the inner run entered from
// the frame kOuterFrame.
class TwoLoops {
 public:
  static constexpr Address kBase = 0x10000;
  static constexpr Address kThreadState = kBase;
  static constexpr Address kInnerLoop = kBase + 0x100, kInnerEntry = kBase + 0x140;
  static constexpr Address kOuterLoop = kBase + 0x280, kOuterEntry = kBase + 0x2c0;
  static constexpr Address kChunk = kBase + 0x400;
  static constexpr Address kOuterFrame = kChunk + 0x40, kInnerFrame = kChunk + 0x80;

  TwoLoops() : memory_(0x1000) {
    layout.version = {3, 12};
    layout.thread = {
        .size = 24, .cframe = 0, .root_cframe = 32, .datastack_chunk = 8, .datastack_top = 16};
    layout.cframe = {.current_frame = 0, .previous = 8};
    layout.frame = {.size = 32, .previous = 0, .code = 8, .instruction = 16, .owner = 24};
    SetWord(kThreadState, kInnerLoop);
    SetWord(kThreadState + 8, kChunk);
    SetWord(kThreadState + 16, kInnerFrame + 0x40);
    SetWord(kChunk + layout.chunk.size, 0x400);
    SetLoop(kThreadState + 32, 0, 0);
    SetLoop(kOuterLoop, kOuterFrame, kThreadState + 32);
    SetLoop(kInnerLoop, kInnerFrame, kOuterLoop);
    SetFrame(kOuterEntry, 0, 0, kOfCStack);
    SetFrame(kOuterFrame, kOuterEntry, 0xa0, kOfThread);
    SetFrame(kInnerEntry, kOuterFrame, 0, kOfCStack);
    SetFrame(kInnerFrame, kInnerEntry, 0xb0, kOfThread);
  }

  void SetWord(Address at, uint64_t value) { std::memcpy(&memory_[at - kBase], &value, 8); }
  void SetLoop(Address at, Address frame, Address previous) {
    SetWord(at, frame);
    SetWord(at + 8, previous);
  }
  void SetFrame(Address at, Address previous, Address code, uint8_t owner) {
    SetWord(at, previous);
    SetWord(at + 8, code);
    SetWord(at + 24, owner);
  }

  void Fill(StackCopy& copy) {
    std::vector<pyabi::ReadRequest> requests;
    copy.AppendRequests(0, requests);
    for (const auto& request : requests) {
      std::memset(request.into, 0, request.size);
      if (request.address < kBase || request.address + 8 > kBase + memory_.size()) continue;
      const size_t offset = request.address - kBase;
      std::memcpy(request.into, &memory_[offset], std::min(request.size, memory_.size() - offset));
    }
  }

  // Copies what the plan asks for until the chain is walked; true when it is a stack.
  bool Settled(StackPlan& plan) {
    StackCopy copy;
    plan.AddPredicted(copy);
    for (reads_ = 1; reads_ < 20; ++reads_) {
      Fill(copy);
      const auto first = plan.FindFirst(copy);
      if (!first) {
        plan.AddFirst(copy);
        continue;
      }
      const WalkResult walk = Walk(copy, layout, *first, frames_, loop_frames_);
      if (walk.status == WalkStatus::kMissing) {
        plan.AddMissing(copy, walk.missing);
        continue;
      }
      if (walk.status != WalkStatus::kComplete || !plan.IsSettled(copy, walk, loop_frames_))
        return false;
      plan.Learn(copy, frames_, loop_frames_);
      return true;
    }
    ADD_FAILURE() << "the plan never asks for what is missing";
    return false;
  }
  bool Settled() {
    StackPlan plan(layout, kThreadState);
    return Settled(plan);
  }

  Layout layout;
  int reads() const { return reads_; }
  const std::vector<RawFrame>& frames() const { return frames_; }

 private:
  std::vector<std::byte> memory_;
  std::vector<RawFrame> frames_;
  std::vector<Address> loop_frames_;
  int reads_ = 0;
};

TEST(StackPlan, OneReadIsEnoughTheSecondTime) {
  TwoLoops target;
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  EXPECT_TRUE(target.Settled(plan));
  EXPECT_EQ(target.frames().size(), 2U);
  EXPECT_GT(target.reads(), 1);
  EXPECT_TRUE(target.Settled(plan));
  EXPECT_EQ(target.reads(), 1);
}

TEST(StackPlan, WhereNoLoopRunsThereIsNoStack) {
  TwoLoops target;
  target.SetWord(TwoLoops::kThreadState, TwoLoops::kThreadState + 32);
  EXPECT_TRUE(target.Settled());
  EXPECT_TRUE(target.frames().empty());
}

// A greenlet has a _PyCFrame in which nothing runs, so far or but C functions.
TEST(StackPlan, WhereAGreenletRunsNoPythonThereIsNoStack) {
  TwoLoops target;
  target.SetLoop(TwoLoops::kInnerLoop, 0, TwoLoops::kThreadState + 32);
  EXPECT_TRUE(target.Settled());
  EXPECT_TRUE(target.frames().empty());
}

// The loop has been announced, its current frame not filled in yet.
TEST(StackPlan, WhatAnEarlierRunLeftIsNoStack) {
  TwoLoops nothing;
  nothing.SetWord(TwoLoops::kInnerLoop, 0);
  EXPECT_FALSE(nothing.Settled());
  nothing.SetLoop(TwoLoops::kInnerLoop, 0, 0);
  EXPECT_FALSE(nothing.Settled());

  TwoLoops elsewhere;
  elsewhere.SetFrame(TwoLoops::kInnerEntry, TwoLoops::kOuterEntry, 0, kOfCStack);
  EXPECT_FALSE(elsewhere.Settled());

  TwoLoops same_loop;
  same_loop.SetWord(TwoLoops::kInnerLoop, TwoLoops::kOuterFrame);
  EXPECT_FALSE(same_loop.Settled());
}

// As above, but both words of the _PyCFrame are of an earlier run, and what they lead to still
// hangs together: one run is missing.
TEST(StackPlan, WhatAnEarlierRunLeftMayHangTogether) {
  TwoLoops target;
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  EXPECT_TRUE(target.Settled(plan));
  plan.Confirm();
  target.SetLoop(TwoLoops::kInnerLoop, TwoLoops::kOuterFrame, TwoLoops::kThreadState + 32);
  EXPECT_FALSE(target.Settled(plan));
}

TEST(StackPlan, ATornCopyTeachesNothingOfTheCStack) {
  TwoLoops target;
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  const auto settled_with = [&](Address loop) {
    target.SetWord(TwoLoops::kThreadState, loop);
    target.SetLoop(loop, TwoLoops::kInnerFrame, TwoLoops::kOuterLoop);
    return target.Settled(plan);
  };
  constexpr Address kFar = TwoLoops::kInnerEntry - 0xc0, kNear = TwoLoops::kInnerEntry - 0x10;
  EXPECT_TRUE(settled_with(kNear)) << "the first one is compared with nothing";
  EXPECT_TRUE(settled_with(kFar));
  plan.Confirm();
  EXPECT_TRUE(settled_with(kNear));
  plan.Confirm();
  EXPECT_FALSE(settled_with(kFar));
}

TEST(StackPlan, AThreadsFirstFrameLiesAtTheBottomOfItsDataStack) {
  TwoLoops target;
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  ASSERT_TRUE(target.Settled(plan));
  StackCopy copy;
  plan.AddPredicted(copy);
  target.Fill(copy);
  const Address bottom = TwoLoops::kChunk + target.layout.chunk.data + 8;
  const auto begins_at_bottom = [&](Address frame) {
    return plan.BeginsAtBottom(copy, {{.frame = TwoLoops::kInnerFrame}, {.frame = frame}});
  };
  EXPECT_TRUE(begins_at_bottom(TwoLoops::kOuterFrame)) << "3.12 has other marks";
  target.layout.version = {3, 11, 7};
  EXPECT_TRUE(begins_at_bottom(bottom));
  EXPECT_FALSE(begins_at_bottom(bottom + 0x40));
  EXPECT_FALSE(begins_at_bottom(0xdead0));
  EXPECT_TRUE(plan.BeginsAtBottom(copy, {}));
}

TEST(StackPlan, AFrameThatWasPoppedIsNoStack) {
  TwoLoops target;
  target.SetWord(TwoLoops::kThreadState + 16, TwoLoops::kInnerFrame);
  EXPECT_FALSE(target.Settled());
}

/// What the plan predicts once `target` was looked at often enough to learn it.
StackCopy PredictedOf(TwoLoops& target) {
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  for (int look = 0; look < 3; ++look) EXPECT_TRUE(target.Settled(plan));
  StackCopy copy;
  plan.AddPredicted(copy);
  EXPECT_NE(copy.Find(TwoLoops::kInnerFrame, 8), nullptr);
  return copy;
}

constexpr Address kOlder = TwoLoops::kChunk + 0x200;
constexpr uint64_t kClaimed = uint64_t{16} << 20;

void SetClaimingChunk(TwoLoops& target, Address chunk, Address previous) {
  target.SetWord(chunk + target.layout.chunk.previous, previous);
  target.SetWord(chunk + target.layout.chunk.top, (kClaimed - target.layout.chunk.data) / 8);
}

TEST(StackPlan, AChunkThatLeadsBackToItselfIsCopiedOnce) {
  TwoLoops target;
  target.SetWord(TwoLoops::kChunk + target.layout.chunk.previous, kOlder);
  SetClaimingChunk(target, kOlder, kOlder);
  EXPECT_LT(PredictedOf(target).byte_count(), kClaimed + (64U << 10));

  SetClaimingChunk(target, kOlder, TwoLoops::kChunk);
  EXPECT_LT(PredictedOf(target).byte_count(), kClaimed + (64U << 10));
}

TEST(StackPlan, ChunksThatClaimTooMuchAreNotCopied) {
  TwoLoops target;
  target.SetWord(TwoLoops::kChunk + target.layout.chunk.previous, kOlder);
  for (Address chunk = kOlder; chunk < kOlder + 8 * 0x20; chunk += 0x20) {
    SetClaimingChunk(target, chunk, chunk + 0x20);
  }
  EXPECT_LE(PredictedOf(target).byte_count(), StackCopy::kMostBytes);
}

TEST(StackPlan, AFullCopyIsGivenUp) {
  const TwoLoops target;
  StackPlan plan(target.layout, TwoLoops::kThreadState);
  StackCopy copy;
  EXPECT_FALSE(copy.Add(0, StackCopy::kMostBytes + 1));
  EXPECT_TRUE(copy.ranges().empty());
  EXPECT_TRUE(copy.Add(0, StackCopy::kMostBytes));
  EXPECT_FALSE(copy.Add(0, 1));
  EXPECT_FALSE(plan.AddMissing(copy, TwoLoops::kInnerFrame));
  EXPECT_FALSE(plan.AddFirst(copy));
  EXPECT_EQ(copy.ranges().size(), 1U);
}

}  // namespace
}  // namespace pystrobe::remote
