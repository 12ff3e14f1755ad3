// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/own_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace pystrobe::signals {
namespace {

constexpr size_t kPage = OwnPages::kPage;

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

OwnPages MakePages() {
  auto pages = OwnPages::Make(getpid());
  EXPECT_TRUE(pages);
  pages->Renew();
  return *std::move(pages);
}

TEST(OwnPagesTest, BringsValues) {
  Pages memory(1);
  memory.Set(0, 1);
  memory.Set(kPage - 8, 2);
  OwnPages pages = MakePages();
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address()), 1U);
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(kPage - 8)), 2U);
}

TEST(OwnPagesTest, ShowsOneMomentUntilItIsRenewed) {
  Pages memory(1);
  OwnPages pages = MakePages();
  for (uint64_t value = 1; value < 5; ++value) {
    memory.Set(0, value);
    pages.Renew();
    EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address()), value);
    memory.Set(0, 77);
    EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address()), value);
  }
}

TEST(OwnPagesTest, StitchesWhatLiesOnTwoPages) {
  Pages memory(3);
  memory.Set(kPage - 4, 0x1122334455667788);
  memory.Set(2 * kPage - 4, 0x99);
  OwnPages pages = MakePages();
  // In this order they do not lie side by side.
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(kPage + 8)), 0U);
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(kPage - 4)), 0x1122334455667788U);
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(2 * kPage - 4)), 0x99U);
  pages.Renew();  // now they do
  EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(kPage - 4)), 0x1122334455667788U);
}

TEST(OwnPagesTest, HasNothingWhereThereIsNoMemory) {
  Pages memory(3);
  memory.Set(0, 1);
  memory.Set(2 * kPage, 3);
  OwnPages pages = MakePages();
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address()), 1U);
    EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(2 * kPage)), 3U);
    if (look == 0) {
      EXPECT_NE(pages.Find(memory.address(kPage), 8), nullptr);
      memory.Unmap(1);
    } else {
      EXPECT_EQ(pages.Find(memory.address(kPage), 8), nullptr);
      EXPECT_EQ(pages.Find(memory.address(kPage - 4), 8), nullptr);
    }
    pages.Renew();
  }
  EXPECT_EQ(pages.Find(0, 8), nullptr);
  EXPECT_EQ(pages.Find(~Address{0} - 3, 8), nullptr);
  EXPECT_EQ(pages.Find(memory.address(), OwnPages::kLongest + 1), nullptr);
}

TEST(OwnPagesTest, HoldsSoManyAndNoMore) {
  Pages memory(OwnPages::kMostPages + 2);
  for (size_t i = 0; i < OwnPages::kMostPages + 2; ++i) memory.Set(i * kPage, i + 1);
  OwnPages pages = MakePages();
  for (int look = 0; look < 3; ++look) {
    // Every other one, so that no two are one piece.
    for (size_t i = 0; i < OwnPages::kMostPages; ++i) {
      const size_t page = i * 2 % (OwnPages::kMostPages + 1);
      EXPECT_EQ(pages.ValueOr0<uint64_t>(memory.address(page * kPage)), page + 1);
    }
    EXPECT_EQ(pages.Find(memory.address((OwnPages::kMostPages + 1) * kPage), 8), nullptr);
    pages.Renew();
  }
}

}  // namespace
}  // namespace pystrobe::signals
