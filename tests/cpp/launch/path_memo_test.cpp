// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/path_memo.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "profiler/base/hash.h"

namespace pystrobe::launch {
namespace {

PathMemo Make() {
  auto memo = PathMemo::Make();
  EXPECT_TRUE(memo);
  return *std::move(memo);
}

TEST(PathMemo, FindsWhatWasPut) {
  PathMemo memo = Make();
  EXPECT_EQ(memo.Find(5), std::nullopt);
  memo.Put(5, 0);
  memo.Put(7, 70);
  EXPECT_EQ(memo.Find(5), 0U);
  EXPECT_EQ(memo.Find(7), 70U);
  EXPECT_EQ(memo.Find(5 + PathMemo::kSlots), std::nullopt) << "of the same place";
}

TEST(PathMemo, TheFirstPathOfAHashStays) {
  PathMemo memo = Make();
  memo.Put(5, 1);
  memo.Put(5, 2);
  EXPECT_EQ(memo.Find(5), 1U);
}

TEST(PathMemo, WhereAllPlacesAreTakenOneGivesWay) {
  PathMemo memo = Make();
  for (uint32_t i = 0; i <= PathMemo::kTries; ++i) memo.Put(5 + i * PathMemo::kSlots, i);
  size_t found = 0;
  for (uint32_t i = 0; i <= PathMemo::kTries; ++i) {
    const auto path = memo.Find(5 + i * PathMemo::kSlots);
    if (!path) continue;
    EXPECT_EQ(*path, i);
    ++found;
  }
  EXPECT_EQ(found, PathMemo::kTries);
  EXPECT_TRUE(memo.Find(5 + PathMemo::kTries * PathMemo::kSlots)) << "the last is there";
}

// The path of a hash is its lower bits, and places are few: a reader that mixed up two entries
// would see it.
TEST(PathMemo, ReadersSeeNoPathOfAnother) {
  PathMemo memo = Make();
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> found{0};
  const auto hash_of = [](uint64_t i) { return (MixBits(i % 64) & ~uint64_t{0xffff}) | 1; };
  const auto path_of = [](uint64_t hash) { return static_cast<uint32_t>(hash >> 32); };
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      // Some at the end, too: a reader may have had no CPU while there was anything to find.
      for (uint64_t i = 0, after_all = 0; after_all < 1'000; ++i, after_all += ends) {
        const auto path = memo.Find(hash_of(i));
        if (!path) continue;
        EXPECT_EQ(*path, path_of(hash_of(i)));
        ++found;
      }
    });
  }
  for (uint64_t i = 0; i < 200'000; ++i) memo.Put(hash_of(i * 7), path_of(hash_of(i * 7)));
  ends = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(found, 0U);
}

}  // namespace
}  // namespace pystrobe::launch
