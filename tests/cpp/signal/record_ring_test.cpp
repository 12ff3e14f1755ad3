// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/record_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace pystrobe::signals {
namespace {

RecordRing MakeRing(size_t bytes) {
  auto ring = RecordRing::Make(bytes);
  EXPECT_TRUE(ring);
  return *std::move(ring);
}

/// A record that can be checked: as many bytes as it says, each of them its number.
bool Put(RecordRing& ring, size_t size, uint8_t number) {
  std::byte* into = ring.Reserve(size);
  if (into == nullptr) return false;
  std::memset(into, number, size);
  ring.Commit();
  return true;
}

bool IsRecord(std::span<const std::byte> record, size_t size, uint8_t number) {
  return record.size() == size && std::ranges::all_of(record, [number](std::byte byte) {
           return byte == std::byte{number};
         });
}

TEST(RecordRingTest, GivesRecordsInTheirOrder) {
  RecordRing ring = MakeRing(4096);
  EXPECT_TRUE(ring.Front().empty());
  EXPECT_TRUE(Put(ring, 10, 1));
  EXPECT_TRUE(Put(ring, 700, 2));
  EXPECT_TRUE(IsRecord(ring.Front(), 10, 1));
  ring.Pop();
  EXPECT_TRUE(IsRecord(ring.Front(), 700, 2));
  ring.Pop();
  EXPECT_TRUE(ring.Front().empty());
}

TEST(RecordRingTest, WhatIsNotCommittedIsNotThere) {
  RecordRing ring = MakeRing(4096);
  EXPECT_NE(ring.Reserve(100), nullptr);
  EXPECT_TRUE(ring.Front().empty());
  EXPECT_TRUE(Put(ring, 8, 3));
  EXPECT_TRUE(IsRecord(ring.Front(), 8, 3));
}

TEST(RecordRingTest, RefusesWhatDoesNotFit) {
  RecordRing ring = MakeRing(4096);
  int count = 0;
  while (Put(ring, 100, static_cast<uint8_t>(count))) ++count;
  EXPECT_GT(count, 30);
  ring.Pop();  // nothing was asked for: nothing is freed
  EXPECT_FALSE(Put(ring, 100, 0));
  ASSERT_TRUE(IsRecord(ring.Front(), 100, 0));
  ring.Pop();
  EXPECT_TRUE(Put(ring, 100, 99));
}

TEST(RecordRingTest, HasRoomForHalfOfItWhereverItStands) {
  RecordRing ring = MakeRing(4096);
  for (int step = 0; step < 500; ++step) {
    const size_t size = 1 + static_cast<size_t>(step) * 13 % 90;
    for (size_t put = 0; put + size + 16 <= 2048; put += size + 16) {
      ASSERT_TRUE(Put(ring, size, 5)) << step;
    }
    for (auto record = ring.Front(); !record.empty(); record = ring.Front()) {
      ASSERT_TRUE(IsRecord(record, size, 5));
      ring.Pop();
    }
  }
}

TEST(RecordRingTest, TheLongestFitsWhereverTheRingStands) {
  RecordRing ring = MakeRing(4096);
  for (size_t step = 0; step < 600; ++step) {
    ASSERT_TRUE(Put(ring, 8 * (step % 7), 1));
    if (!ring.Front().empty() || step % 7 == 0) {
      ring.Front();
      ring.Pop();
    }
    ASSERT_TRUE(Put(ring, ring.longest(), 2)) << step;
    ASSERT_TRUE(IsRecord(ring.Front(), ring.longest(), 2)) << step;
    ring.Pop();
  }
}

// What was read before is no burden, wherever it was.
TEST(RecordRingTest, HasAllItsRoomWhereItBeginsAgain) {
  constexpr size_t kBytes = size_t{1} << 20;
  RecordRing ring = MakeRing(kBytes);
  const std::byte* const start = ring.Reserve(1000);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Put(ring, 1000, 1));
    ASSERT_FALSE(ring.Front().empty());
    ring.Pop();
  }
  // The 64th or so was the last before the start came again.
  EXPECT_LT(ring.Reserve(1000) - start, 100 * 1000 - 50 * 1000);
  size_t count = 0;
  while (Put(ring, 1000, static_cast<uint8_t>(count))) ++count;
  EXPECT_GT(count, kBytes / 1000 * 9 / 10);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(IsRecord(ring.Front(), 1000, static_cast<uint8_t>(i)));
    ring.Pop();
  }
  EXPECT_TRUE(ring.Front().empty());
}

class RecordRingSizes : public ::testing::TestWithParam<size_t> {};

// The larger one begins again now and then.
INSTANTIATE_TEST_SUITE_P(Bytes, RecordRingSizes, ::testing::Values(1024, size_t{128} << 10));

TEST_P(RecordRingSizes, LosesNothingBetweenTwoThreads) {
  constexpr int kRecords = 200'000;
  RecordRing ring = MakeRing(GetParam());
  std::thread writer([&ring] {
    std::minstd_rand random(1);
    for (int i = 0; i < kRecords;) {
      const size_t size = 1 + (static_cast<size_t>(i) * 37) % 300;
      if (Put(ring, size, static_cast<uint8_t>(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (int i = 0; i < kRecords;) {
    const auto record = ring.Front();
    if (record.empty()) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_TRUE(IsRecord(record, 1 + (static_cast<size_t>(i) * 37) % 300, static_cast<uint8_t>(i)));
    ring.Pop();
    ++i;
  }
  writer.join();
  EXPECT_TRUE(ring.Front().empty());
}

}  // namespace
}  // namespace pystrobe::signals
