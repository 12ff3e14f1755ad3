// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace pystrobe::signals {
namespace {

constexpr size_t kPage = OwnMemory::kPage, kPiece = OwnMemory::kPiece;

/// Pages of our own to look at.
class Pages {
 public:
  explicit Pages(size_t count)
      : size_(count * kPage),
        data_(static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  Address address(size_t offset = 0) const { return reinterpret_cast<Address>(data_) + offset; }
  void Set(size_t offset, uint64_t value) { std::memcpy(data_ + offset, &value, sizeof value); }
  void Unmap(size_t page) { mprotect(data_ + page * kPage, kPage, PROT_NONE); }

 private:
  size_t size_;
  std::byte* data_;
};

OwnMemory MakeMemory() {
  auto memory = OwnMemory::Make(getpid());
  EXPECT_TRUE(memory);
  memory->Renew();
  return *std::move(memory);
}

TEST(OwnMemoryTest, BringsValues) {
  Pages mapped(1);
  mapped.Set(0, 1);
  mapped.Set(kPage - 8, 2);
  OwnMemory memory = MakeMemory();
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), 1U);
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage - 8)), 2U);
}

TEST(OwnMemoryTest, ShowsOneMomentUntilItIsRenewed) {
  Pages mapped(1);
  OwnMemory memory = MakeMemory();
  for (uint64_t value = 1; value < 5; ++value) {
    mapped.Set(0, value);
    memory.Renew();
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), value);
    mapped.Set(0, 77);
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), value);
  }
}

TEST(OwnMemoryTest, StitchesWhatLiesOnTwoPages) {
  Pages mapped(3);
  mapped.Set(kPage - 4, 0x1122334455667788);
  mapped.Set(2 * kPage - 4, 0x99);
  OwnMemory memory = MakeMemory();
  // In this order they do not lie side by side.
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage + 8)), 0U);
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage - 4)), 0x1122334455667788U);
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(2 * kPage - 4)), 0x99U);
  memory.Renew();  // now they do
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage - 4)), 0x1122334455667788U);
}

TEST(OwnMemoryTest, HasNothingWhereThereIsNoMemory) {
  Pages mapped(3);
  OwnMemory memory = MakeMemory();
  for (uint64_t look = 0; look < 3; ++look) {
    // What lies behind the hole is of this look as well.
    mapped.Set(0, look + 1);
    mapped.Set(2 * kPage, look + 7);
    memory.Renew();
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), look + 1);
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(2 * kPage)), look + 7);
    if (look == 0) {
      EXPECT_NE(memory.Find(mapped.address(kPage), 8), nullptr);
      mapped.Unmap(1);
    } else {
      EXPECT_EQ(memory.Find(mapped.address(kPage), 8), nullptr);
      EXPECT_EQ(memory.Find(mapped.address(kPage - 4), 8), nullptr);
    }
  }
  EXPECT_EQ(memory.Find(0, 8), nullptr);
  EXPECT_EQ(memory.Find(~Address{0} - 3, 8), nullptr);
  EXPECT_EQ(memory.Find(mapped.address(), OwnMemory::kLongest + 1), nullptr);
}

TEST(OwnMemoryTest, HoldsSoManyAndNoMore) {
  Pages mapped(OwnMemory::kMostPages + 2);
  for (size_t i = 0; i < OwnMemory::kMostPages + 2; ++i) mapped.Set(i * kPage, i + 1);
  OwnMemory memory = MakeMemory();
  for (int look = 0; look < 3; ++look) {
    // Every other one, so that no two are one piece.
    for (size_t i = 0; i < OwnMemory::kMostPages; ++i) {
      const size_t page = i * 2 % (OwnMemory::kMostPages + 1);
      EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(page * kPage)), page + 1);
    }
    // Pages that were looked at before need less room.
    const std::byte* next = memory.Find(mapped.address((OwnMemory::kMostPages + 1) * kPage), 8);
    EXPECT_EQ(next == nullptr, look == 0);
    memory.Renew();
  }
}

TEST(OwnMemoryTest, StitchesWhatLiesOnThreePieces) {
  Pages mapped(2);
  const size_t begin = kPage - kPiece - 8;
  for (size_t at = 0; at < OwnMemory::kLongest; at += 8) mapped.Set(begin + at, at);
  OwnMemory memory = MakeMemory();
  // The last one is there before the others are.
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage)), kPiece + 8);
  for (int look = 0; look < 2; ++look) {
    const std::byte* bytes = memory.Find(mapped.address(begin), OwnMemory::kLongest);
    ASSERT_NE(bytes, nullptr);
    for (uint64_t at = 0; at < OwnMemory::kLongest; at += 8) {
      uint64_t value = 0;
      std::memcpy(&value, bytes + at, sizeof value);
      EXPECT_EQ(value, at);
    }
    memory.Renew();
  }
}

TEST(OwnMemoryTest, WhatIsNextToWhatWasAskedForIsOfTheSameMoment) {
  Pages mapped(1);
  OwnMemory memory = MakeMemory();
  EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), 0U);
  for (uint64_t value = 1; value < 4; ++value) {
    mapped.Set(0, value);
    mapped.Set(kPage - 8, value);
    memory.Renew();
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), value);
    // It is not asked for in each look, so it is not there at once.
    if (value == 2) continue;
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage - 8)), value);
  }
}

TEST(OwnMemoryTest, AnAddressThatNoProcessHasSpoilsNoOther) {
  Pages mapped(2);
  OwnMemory memory = MakeMemory();
  for (uint64_t value = 1; value < 4; ++value) {
    mapped.Set(0, value);
    mapped.Set(kPage, value);
    memory.Renew();
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address()), value);
    for (const Address wild : {Address{1} << 47, Address{1} << 57, Address{0xFFFF800000000000}}) {
      EXPECT_EQ(memory.Find(wild, 8), nullptr);
    }
    EXPECT_EQ(memory.ValueOr0<uint64_t>(mapped.address(kPage)), value);
  }
}

}  // namespace
}  // namespace pystrobe::signals
