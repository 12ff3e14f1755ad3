// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "random_layout.h"

namespace pystrobe::pyabi {
namespace {

using ::testing::ElementsAre;

constexpr Address kStack = 0x10000;
constexpr uint8_t kThread = 0, kGenerator = 1, kCStack = 3;

// A small layout of our own: the walker must take every offset from it.
Layout TestLayout(PyVersion version) {
  Layout layout;
  layout.version = version;
  layout.frame_style =
      version < PyVersion{3, 11} ? FrameStyle::kFrameObjects : FrameStyle::kInterpreterFrames;
  layout.frame.size = 40;
  layout.frame.previous = 0;
  layout.frame.code = 8;
  layout.frame.instruction = 16;
  layout.frame.owner = 24;
  layout.frame.stacktop = 28;
  return layout;
}

struct FakeFrame {
  Address previous = 0;
  Address code = 0;
  uint64_t instruction = 0;
  uint8_t owner = kThread;
  int32_t stacktop = 0;
  bool is_entry = false;
  int8_t executing = 1;
};

// Copies the frames, each as a range of its own at the address given.
StackCopy CopyOf(const std::map<Address, FakeFrame>& frames) {
  StackCopy copy;
  for (const auto& [address, frame] : frames) copy.Add(address, 40);
  std::vector<ReadRequest> requests;
  copy.AppendRequests(0, requests);
  for (const ReadRequest& request : requests) {
    const FakeFrame& frame = frames.at(request.address);
    auto* bytes = static_cast<std::byte*>(request.into);
    std::memcpy(bytes, &frame.previous, 8);
    std::memcpy(bytes + 8, &frame.code, 8);
    std::memcpy(bytes + 16, &frame.instruction, 8);
    std::memcpy(bytes + 24, &frame.owner, 1);
    std::memcpy(bytes + 28, &frame.stacktop, 4);
    std::memcpy(bytes + 32, &frame.is_entry, 1);
    std::memcpy(bytes + 33, &frame.executing, 1);
  }
  return copy;
}

WalkResult WalkFrom(const StackCopy& copy, const Layout& layout, Address first,
                    std::vector<RawFrame>& frames) {
  std::vector<Address> loop_frames;
  return Walk(copy, layout, first, frames, loop_frames);
}

std::vector<Address> CodesOf(const std::vector<RawFrame>& frames) {
  std::vector<Address> codes;
  for (const RawFrame& frame : frames) codes.push_back(frame.code);
  return codes;
}

TEST(Walk, FollowsTheChainFromLeafToRoot) {
  Layout layout = TestLayout({3, 11});
  StackCopy copy = CopyOf({{kStack, {0, 0xa0, 1}}, {kStack + 64, {kStack, 0xb0, 2}}});
  std::vector<RawFrame> frames;
  WalkResult result = WalkFrom(copy, layout, kStack + 64, frames);
  EXPECT_EQ(result.status, WalkStatus::kComplete);
  EXPECT_THAT(CodesOf(frames), ElementsAre(0xb0, 0xa0));
  EXPECT_EQ(frames[0].instruction, 2U);
}

TEST(Walk, TellsWhoEnteredTheInnermostLoop) {
  std::vector<RawFrame> frames;
  Layout layout = TestLayout({3, 12});
  StackCopy whole = CopyOf({{kStack, {0, 0, 0, kCStack}},
                            {kStack + 64, {kStack, 0xa0}},
                            {kStack + 128, {kStack + 64, 0, 0, kCStack}},
                            {kStack + 192, {kStack + 128, 0xb0}}});
  EXPECT_EQ(WalkFrom(whole, layout, kStack + 192, frames).loop_caller, kStack + 64);
  EXPECT_EQ(WalkFrom(whole, layout, kStack + 64, frames).loop_caller, Address{0});
  layout = TestLayout({3, 11});
  layout.frame.is_entry = 32;
  StackCopy flagged = CopyOf({{kStack, {.code = 0xa0, .is_entry = true}},
                              {kStack + 64, {.previous = kStack, .code = 0xb0}}});
  EXPECT_EQ(WalkFrom(flagged, layout, kStack + 64, frames).loop_caller, Address{0});
  StackCopy none = CopyOf({{kStack, {.code = 0xa0}}});
  EXPECT_EQ(WalkFrom(none, layout, kStack, frames).loop_caller, std::nullopt);
}

TEST(Walk, NamesTheFrameThatWasNotCopied) {
  Layout layout = TestLayout({3, 11});
  StackCopy copy = CopyOf({{kStack + 64, {kStack, 0xb0}}});
  std::vector<RawFrame> frames;
  WalkResult result = WalkFrom(copy, layout, kStack + 64, frames);
  EXPECT_EQ(result.status, WalkStatus::kMissing);
  EXPECT_EQ(result.missing, kStack);
}

TEST(Walk, NoFramesIsAWholeStack) {
  std::vector<RawFrame> frames{{}};
  EXPECT_EQ(WalkFrom({}, TestLayout({3, 12}), 0, frames).status, WalkStatus::kComplete);
  EXPECT_TRUE(frames.empty());
}

TEST(Walk, ACycleIsBroken) {
  StackCopy copy = CopyOf({{kStack, {kStack + 64, 0xa0}}, {kStack + 64, {kStack, 0xb0}}});
  std::vector<RawFrame> frames;
  EXPECT_EQ(WalkFrom(copy, TestLayout({3, 11}), kStack, frames).status, WalkStatus::kBroken);
}

TEST(Walk, AFrameWithoutCodeOrWithAnUnknownOwnerIsBroken) {
  std::vector<RawFrame> frames;
  Layout layout = TestLayout({3, 12});
  EXPECT_EQ(WalkFrom(CopyOf({{kStack, {0, 0}}}), layout, kStack, frames).status,
            WalkStatus::kBroken);
  EXPECT_EQ(WalkFrom(CopyOf({{kStack, {0, 0xa0, 0, 77}}}), layout, kStack, frames).status,
            WalkStatus::kBroken);
}

TEST(Walk, ALoneGeneratorIsNotARootOn311) {
  StackCopy copy = CopyOf({{kStack, {0, 0xa0, 0, kGenerator}}});
  std::vector<RawFrame> frames;
  EXPECT_EQ(WalkFrom(copy, TestLayout({3, 11}), kStack, frames).status, WalkStatus::kIncomplete);
  EXPECT_EQ(frames.size(), 1U);
}

TEST(Walk, From312OnTheLastFrameIsTheEvaluationLoops) {
  Layout layout = TestLayout({3, 12});
  std::vector<RawFrame> frames;
  StackCopy whole = CopyOf({{kStack, {0x9000, 0xa0}}, {0x9000, {0, 0, 0, kCStack}}});
  EXPECT_EQ(WalkFrom(whole, layout, kStack, frames).status, WalkStatus::kComplete);
  EXPECT_THAT(CodesOf(frames), ElementsAre(0xa0));
  StackCopy half = CopyOf({{kStack, {0, 0xa0}}});
  EXPECT_EQ(WalkFrom(half, layout, kStack, frames).status, WalkStatus::kIncomplete);
}

TEST(Walk, FrameObjectsHaveSignedInstructionsAndNoOwner) {
  Layout layout = TestLayout({3, 9});
  StackCopy copy = CopyOf({{kStack, {0, 0xa0, 0xffffffff, 200}}});
  std::vector<RawFrame> frames;
  EXPECT_EQ(WalkFrom(copy, layout, kStack, frames).status, WalkStatus::kComplete);
  EXPECT_EQ(static_cast<int64_t>(frames.at(0).instruction), -1);
}

TEST(Walk, FramesThatWereLeftAreSeenBefore311) {
  std::vector<RawFrame> frames;
  Layout layout = TestLayout({3, 8});
  layout.frame.executing = 33;
  layout.frame.generator = 16;  // where the frames of this test have an instruction
  const auto has_left_frame = [&](int8_t root, int8_t leaf, uint64_t generator = 0) {
    const StackCopy copy = CopyOf({{kStack, {0, 0xa0, generator, kThread, 0, false, root}},
                                   {kStack + 64, {kStack, 0xb0, 2, kThread, 0, false, leaf}}});
    return WalkFrom(copy, layout, kStack + 64, frames).has_left_frame;
  };
  EXPECT_FALSE(has_left_frame(1, 1));
  EXPECT_FALSE(has_left_frame(1, 0)) << "the leaf is being entered";
  EXPECT_TRUE(has_left_frame(0, 1));
  EXPECT_TRUE(has_left_frame(1, 1, 0x9000)) << "a generator is linked to its caller";
  layout.version = {3, 10};
  EXPECT_FALSE(has_left_frame(0, 0));
  EXPECT_FALSE(has_left_frame(2, -2)) << "unwinding; created";
  EXPECT_TRUE(has_left_frame(-1, 0)) << "suspended";
  EXPECT_TRUE(has_left_frame(4, 0)) << "cleared";
  const StackCopy lone = CopyOf({{kStack, {0, 0xa0, 0, kThread, 0, false, -1}}});
  EXPECT_TRUE(WalkFrom(lone, layout, kStack, frames).has_left_frame) << "a generator, just left";
}

TEST(Walk, ClearsTheTagsOfTheCode) {
  Layout layout = TestLayout({3, 14});
  layout.frame.code_tag_mask = 7;
  StackCopy copy = CopyOf({{kStack, {0x9000, 0xa3}}, {0x9000, {0, 0, 0, kCStack}}});
  std::vector<RawFrame> frames;
  WalkFrom(copy, layout, kStack, frames);
  EXPECT_THAT(CodesOf(frames), ElementsAre(0xa0));
}

TEST(Walk, AnyBytesEndInSomeAnswer) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::map<Address, FakeFrame> fakes;
    for (int i = 0; i < 6; ++i) {
      fakes[kStack + 64 * (random() % 6)] = {random() % 3 == 0 ? 0 : kStack + 64 * (random() % 7),
                                             random() % 4, random(),
                                             static_cast<uint8_t>(random() % 8), 0};
    }
    std::vector<RawFrame> frames;
    Layout layout = TestLayout({3, static_cast<uint8_t>(8 + random() % 8)});
    WalkFrom(CopyOf(fakes), layout, kStack + 64 * (random() % 7), frames);
    EXPECT_LE(frames.size(), 6U + 1);
  }
}

// Frames of random bytes, many of them addresses of frames.
StackCopy NoisyCopy(std::mt19937_64& random, size_t count, uint32_t frame_size) {
  StackCopy copy;
  for (size_t i = 0; i < count; ++i) copy.Add(kStack + i * frame_size, frame_size);
  std::vector<ReadRequest> requests;
  copy.AppendRequests(0, requests);
  for (const ReadRequest& request : requests) {
    auto* bytes = static_cast<std::byte*>(request.into);
    for (size_t at = 0; at + 8 <= request.size; at += 8) {
      const uint64_t choices[] = {0, random() % 8, kStack + random() % (count + 1) * frame_size};
      std::memcpy(bytes + at, &choices[random() % 3], 8);
    }
  }
  return copy;
}

TEST(Walk, AnyLayoutThatIsAcceptedEndsInSomeAnswer) {
  std::mt19937_64 random(1);
  constexpr size_t kFrames = 4;
  for (int round = 0; round < 20000; ++round) {
    const auto layout = RandomLayout(random);
    if (!layout) continue;
    const StackCopy copy = NoisyCopy(random, kFrames, layout->frame.size);
    std::vector<RawFrame> frames;
    WalkResult walk =
        WalkFrom(copy, *layout, kStack + random() % kFrames * layout->frame.size, frames);
    EXPECT_LE(frames.size(), kFrames + 1);
    EXPECT_LT(walk.executing, std::max<size_t>(1, frames.size()));
    TrimToExecuting(walk, frames);
  }
}

TEST(TrimToExecuting, KeepsTheRootmostFrameThatExecutesAndItsCallers) {
  Layout layout = TestLayout({3, 11});
  StackCopy copy = CopyOf({{kStack, {0, 0xa0, 0, kThread, 5}},
                           {kStack + 64, {kStack, 0xb0, 0, kThread, -1}},
                           {kStack + 128, {kStack + 64, 0xc0, 0, kThread, -1}}});
  std::vector<RawFrame> frames;
  WalkResult walk = WalkFrom(copy, layout, kStack + 128, frames);
  TrimToExecuting(walk, frames);
  EXPECT_THAT(CodesOf(frames), ElementsAre(0xb0, 0xa0));
}

TEST(TrimToExecuting, KeepsWhatWasCalledThroughC) {
  Layout layout = TestLayout({3, 12});
  StackCopy copy = CopyOf({{kStack, {0, 0, 0, kCStack}},
                           {kStack + 64, {kStack, 0xa0, 0, kThread, -1}},
                           {kStack + 128, {kStack + 64, 0, 0, kCStack}},
                           {kStack + 192, {kStack + 128, 0xb0, 0, kThread, 3}},
                           {kStack + 256, {kStack + 192, 0xc0, 0, kThread, -1}}});
  std::vector<RawFrame> frames;
  WalkResult walk = WalkFrom(copy, layout, kStack + 256, frames);
  TrimToExecuting(walk, frames);
  EXPECT_THAT(CodesOf(frames), ElementsAre(0xc0, 0xb0, 0xa0));
}

TEST(StackCopy, FindsOnlyWhatWasCopiedWhole) {
  StackCopy copy;
  copy.Add(100, 10);
  copy.Add(200, 20);
  EXPECT_NE(copy.Find(100, 10), nullptr);
  EXPECT_EQ(copy.Find(100, 11), nullptr);
  EXPECT_EQ(copy.Find(99, 2), nullptr);
  EXPECT_NE(copy.Find(219, 1), nullptr);
  EXPECT_EQ(copy.Find(220, 1), nullptr);
  EXPECT_EQ(copy.Find(UINT64_MAX, 8), nullptr);
}

TEST(StackCopy, OverlappingRangesAnswerTogether) {
  StackCopy copy;
  copy.Add(100, 8);
  copy.Add(100, 24);
  std::vector<ReadRequest> requests;
  copy.AppendRequests(0, requests);
  const uint64_t words[] = {1, 2, 3};
  for (const ReadRequest& request : requests) std::memcpy(request.into, words, request.size);
  EXPECT_EQ(copy.ValueOr0<uint64_t>(116), 3U);
  EXPECT_EQ(copy.ValueOr0<uint64_t>(100), 1U);
  EXPECT_EQ(copy.ValueOr0<uint64_t>(108), 2U);
}

}  // namespace
}  // namespace pystrobe::pyabi
