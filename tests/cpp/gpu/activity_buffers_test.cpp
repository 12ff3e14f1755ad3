// SPDX-License-Identifier: Apache-2.0
#include "gpu/activity_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace pystrobe::gpu {
namespace {

constexpr size_t kBytes = 4096;
constexpr Nanoseconds kNow{};

bool IsZero(const uint8_t* data) {
  return std::ranges::all_of(std::span(data, kBytes), [](uint8_t byte) { return byte == 0; });
}

TEST(ActivityBuffers, AreLentFilledTakenAndFreeAgain) {
  const auto buffers = ActivityBuffers::Make(2, kBytes, false).value();
  uint8_t* const first = buffers->Lend();
  uint8_t* const second = buffers->Lend();
  ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
  EXPECT_EQ(buffers->Lend(), nullptr);
  EXPECT_EQ(buffers->declined(), 1U);
  EXPECT_FALSE(buffers->Take(kNow));
  std::memset(second, 7, 100);
  buffers->Fill(second, 100);
  const auto filled = buffers->Take(kNow);
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->data, second);
  EXPECT_EQ(filled->bytes, 100U);
  EXPECT_EQ(buffers->Lend(), nullptr) << "it is being read";
  buffers->GiveBack(*filled);
  EXPECT_EQ(buffers->Lend(), second);
  EXPECT_TRUE(IsZero(second));
}

TEST(ActivityBuffers, WhatIsNotOfItIsLeftAlone) {
  const auto buffers = ActivityBuffers::Make(2, kBytes, false).value();
  std::vector<uint8_t> other(kBytes);
  buffers->Fill(other.data(), 8);
  EXPECT_FALSE(buffers->Take(kNow));
}

TEST(ActivityBuffers, TheSpareOneIsLentToManyAndNeverRead) {
  const auto buffers = ActivityBuffers::Make(1, kBytes, true).value();
  uint8_t* const own = buffers->Lend();
  uint8_t* const spare = buffers->Lend();
  ASSERT_NE(spare, nullptr);
  ASSERT_NE(spare, own);
  EXPECT_EQ(buffers->Lend(), spare);
  EXPECT_EQ(buffers->declined(), 2U);
  std::memset(spare, 1, kBytes);
  buffers->Fill(spare, 300);
  EXPECT_FALSE(buffers->Take(kNow));
  EXPECT_EQ(buffers->spare_bytes(), 300U);
}

TEST(ActivityBuffers, TakeWaitsForOneAndCanBeWoken) {
  const auto buffers = ActivityBuffers::Make(2, kBytes, false).value();
  const Nanoseconds late = MonotonicNow() + std::chrono::seconds(50);
  std::thread filler([&] { buffers->Fill(buffers->Lend(), 8); });
  const auto filled = buffers->Take(late);
  filler.join();
  ASSERT_TRUE(filled);
  buffers->GiveBack(*filled);
  std::thread waker([&] { buffers->Wake(); });
  EXPECT_FALSE(buffers->Take(late));
  waker.join();
}

TEST(ActivityBuffers, AreAllThereOnceTheyAreReclaimed) {
  const auto buffers = ActivityBuffers::Make(3, kBytes, false).value();
  for (int i = 0; i < 3; ++i) std::memset(buffers->Lend(), 9, kBytes);
  buffers->Reclaim();
  for (int i = 0; i < 3; ++i) {
    uint8_t* const lent = buffers->Lend();
    ASSERT_NE(lent, nullptr);
    EXPECT_TRUE(IsZero(lent));
  }
}

TEST(ActivityBuffers, RefusesWhatCannotBe) {
  EXPECT_FALSE(ActivityBuffers::Make(0, kBytes, false));
  EXPECT_FALSE(ActivityBuffers::Make(65, kBytes, false));
  EXPECT_FALSE(ActivityBuffers::Make(1, 13, false));
  EXPECT_TRUE(ActivityBuffers::Make(64, kBytes, true));
}

// A buffer that two had at once would have a number of the other's in it.
TEST(ActivityBuffers, ManyThreadsFillAndOneReads) {
  constexpr uint64_t kEach = 20'000, kThreads = 4;
  const auto buffers = ActivityBuffers::Make(3, kBytes, false).value();
  std::atomic<uint64_t> filled{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) {
        uint8_t* const lent = buffers->Lend();
        if (lent == nullptr) continue;
        ASSERT_EQ(*reinterpret_cast<uint64_t*>(lent), 0U);
        std::memcpy(lent, &thread, sizeof thread);
        std::memcpy(lent + sizeof thread, &thread, sizeof thread);
        ++filled;
        buffers->Fill(lent, 2 * sizeof thread);
      }
      --running;
      buffers->Wake();
    });
  }
  uint64_t taken = 0;
  for (;;) {
    const bool last = running == 0;
    const auto found = buffers->Take(MonotonicNow() + std::chrono::milliseconds(100));
    if (!found && last) break;
    if (!found) continue;
    uint64_t words[2];
    std::memcpy(words, found->data, sizeof words);
    EXPECT_EQ(words[0], words[1]);
    ++taken;
    buffers->GiveBack(*found);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, filled);
  EXPECT_EQ(taken + buffers->declined(), kEach * kThreads);
}

}  // namespace
}  // namespace pystrobe::gpu
