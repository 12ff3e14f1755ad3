// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/last_walk.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace pystrobe::launch {
namespace {

constexpr uint64_t kSeed = 77;
constexpr uint64_t kStack = 0x7000'0000, kHeap = 0x5000'0000;

/// A thread's frames. To ask for one that is not there ends the test.
class Frames {
 public:
  void Push(uint64_t frame, uint64_t instruction) {
    links_[frame] = {leaf(), instruction};
    frames_.push_back(frame);
  }
  void Push(uint64_t instruction) { Push(kStack + 0x80 * frames_.size(), instruction); }
  void Pop() {
    links_.erase(leaf());
    frames_.pop_back();
  }
  void GoTo(size_t depth, uint64_t instruction) {
    links_[frames_[depth]].instruction = instruction;
  }
  uint64_t leaf() const { return frames_.empty() ? 0 : frames_.back(); }
  size_t depth() const { return frames_.size(); }
  std::vector<uint64_t> Instructions() const {
    std::vector<uint64_t> all;
    for (const uint64_t frame : frames_) all.push_back(links_.at(frame).instruction);
    return all;
  }

  uint64_t CallerOf(uint64_t frame) const { return links_.at(frame).caller; }
  uint64_t InstructionOf(uint64_t frame) const { return links_.at(frame).instruction; }

 private:
  struct Link {
    uint64_t caller = 0, instruction = 0;
  };
  std::map<uint64_t, Link> links_;
  std::vector<uint64_t> frames_;
};

Frames Deep(size_t depth) {
  Frames frames;
  for (size_t i = 0; i < depth; ++i) frames.Push(100 + i);
  return frames;
}

uint64_t HashOfNew(const Frames& frames, uint64_t seed = kSeed) {
  return LastWalk().Hash(frames, frames.leaf(), seed);
}

TEST(LastWalk, KeepsWhatHasNotChanged) {
  Frames frames = Deep(10);
  LastWalk walk;
  const uint64_t before = walk.Hash(frames, frames.leaf(), kSeed);
  EXPECT_EQ(walk.kept(), 0U);
  EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), before);
  EXPECT_EQ(walk.kept(), 10U);
  frames.GoTo(9, 1);
  EXPECT_NE(walk.Hash(frames, frames.leaf(), kSeed), before) << "the leaf went on";
  EXPECT_EQ(walk.kept(), 9U);
  frames.Pop();
  frames.Push(109);
  frames.Push(7);
  EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), HashOfNew(frames));
  EXPECT_EQ(walk.kept(), 9U) << "another call has the place of the one before";
}

TEST(LastWalk, SeesWhatChangedBelow) {
  Frames frames = Deep(10);
  LastWalk walk;
  const uint64_t before = walk.Hash(frames, frames.leaf(), kSeed);
  frames.GoTo(0, 1);
  const uint64_t after = walk.Hash(frames, frames.leaf(), kSeed);
  EXPECT_NE(after, before);
  EXPECT_EQ(after, HashOfNew(frames));
  EXPECT_EQ(walk.kept(), 0U);
  frames.GoTo(0, 100);
  EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), before);
}

// The frame is where one was, with the same instruction, but another one called it.
TEST(LastWalk, SeesAnotherCaller) {
  Frames frames = Deep(2);
  frames.Push(kHeap, 5);
  LastWalk walk;
  const uint64_t before = walk.Hash(frames, frames.leaf(), kSeed);
  frames.Pop();
  frames.Push(6);
  frames.Push(kHeap, 5);
  EXPECT_NE(walk.Hash(frames, frames.leaf(), kSeed), before);
  EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), HashOfNew(frames));
}

TEST(LastWalk, ForgetsWithAnotherSeed) {
  const Frames frames = Deep(5);
  LastWalk walk;
  const uint64_t before = walk.Hash(frames, frames.leaf(), kSeed);
  EXPECT_NE(walk.Hash(frames, frames.leaf(), kSeed + 1), before);
  EXPECT_EQ(walk.kept(), 0U);
}

TEST(LastWalk, WalksWhatThereIsNoRoomFor) {
  for (const size_t depth : {LastWalk::kMostFrames, LastWalk::kMostFrames + 1, size_t{1000}}) {
    Frames frames = Deep(depth);
    LastWalk walk;
    const uint64_t before = walk.Hash(frames, frames.leaf(), kSeed);
    EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), before);
    frames.GoTo(1, 1);
    EXPECT_NE(walk.Hash(frames, frames.leaf(), kSeed), before);
    frames.Pop();
    EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), HashOfNew(frames));
  }
  Frames frames = Deep(LastWalk::kMostFrames);
  LastWalk walk;
  walk.Hash(frames, frames.leaf(), kSeed);
  frames.Push(1);
  EXPECT_EQ(walk.Hash(frames, frames.leaf(), kSeed), HashOfNew(frames)) << "one too many";
}

// Calls, returns and lines at random, of functions and of generators, whose frames are anywhere.
TEST(LastWalk, SaysTheSameAsAWalkOfItsOwn) {
  std::minstd_rand random(1);
  Frames frames = Deep(3);
  LastWalk walk;
  std::map<uint64_t, std::vector<uint64_t>> instructions_of;
  size_t kept = 0;
  for (int i = 0; i < 5'000; ++i) {
    const auto what = random() % 10;
    if (what < 4 && frames.depth() < 40) {
      frames.Push(random() % 3);
    } else if (what < 5) {
      frames.Push((random() % 2 ? kHeap : 2 * kStack) + 0x1000 * frames.depth(), random() % 3);
    } else if (what < 8 && frames.depth() > 1) {
      frames.Pop();
    } else {
      frames.GoTo(frames.depth() - 1 - random() % std::min<size_t>(frames.depth(), 3),
                  random() % 3);
    }
    const uint64_t hash = walk.Hash(frames, frames.leaf(), kSeed);
    ASSERT_EQ(hash, HashOfNew(frames)) << i;
    const auto [seen, is_new] = instructions_of.emplace(hash, frames.Instructions());
    ASSERT_EQ(seen->second, frames.Instructions()) << "two stacks of one hash";
    kept += walk.kept();
  }
  EXPECT_GT(kept, 5'000U) << "it was of some use";
}

}  // namespace
}  // namespace pystrobe::launch
