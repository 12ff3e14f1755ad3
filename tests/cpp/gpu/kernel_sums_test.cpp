// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernel_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <string>

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;

GpuWork Kernel(const char* name, int64_t begin, int64_t end, uint32_t path = 1) {
  return {.name = name,
          .shape = {.block = {128, 1, 1}, .registers = 32},
          .grid = {4, 2, 1},
          .stream = 7,
          .origin = {.path = path},
          .begin_ns = begin,
          .end_ns = end};
}

uint64_t CountOfAll(const KernelSums& sums) {
  uint64_t count = 0;
  for (size_t i = 0; i < sums.size(); ++i) count += sums.sum(i).count;
  return count;
}

TEST(KernelSums, AddsUpWhatIsOfOneKey) {
  KernelSums sums({});
  const char* const name = "add";
  sums.Add(Kernel(name, 1000, 1100));
  sums.Add(Kernel(name, 2000, 2300));
  sums.Add(Kernel(name, 3000, 3000));
  ASSERT_EQ(sums.size(), kWorkKinds + 1);
  const WorkSum& sum = sums.sum(kWorkKinds);
  EXPECT_EQ(sum.count, 3U);
  EXPECT_EQ(sum.total_ns, 400U);
  EXPECT_EQ(sum.min_ns, 0U);
  EXPECT_EQ(sum.max_ns, 300U);
  EXPECT_THAT(sum.last_grid, ElementsAre(4, 2, 1));
  EXPECT_EQ(sum.buckets[0], 1U);
  EXPECT_EQ(sum.buckets[7], 1U) << "64 to 127 ns";
  EXPECT_EQ(sum.buckets[9], 1U) << "256 to 511 ns";
  EXPECT_EQ(sums.kernels().name(sums.key(kWorkKinds).kernel), "add");
  EXPECT_EQ(sums.kernels().shape(sums.key(kWorkKinds).kernel).registers, 32U);
  EXPECT_EQ(sums.count(), 3U);
  EXPECT_EQ(sums.total_ns(), 400U);
}

TEST(KernelSums, KeepsApartWhatDiffersInAnything) {
  KernelSums sums({});
  const char* const name = "add";
  sums.Add(Kernel(name, 1, 2));
  const auto add = [&](auto change) {
    GpuWork work = Kernel(name, 1, 2);
    change(work);
    sums.Add(work);
  };
  add([](GpuWork& work) { work.name = "mul"; });
  add([](GpuWork& work) { work.origin.path = 2; });
  add([](GpuWork& work) { work.origin = kUnknownOrigin; });
  add([](GpuWork& work) { work.stream = 8; });
  add([](GpuWork& work) { work.device = 1; });
  add([](GpuWork& work) { work.kind = WorkKind::kCopy; });
  add([](GpuWork& work) { work.shape.registers = 33; });
  add([](GpuWork& work) { work.shape.block[2] = 2; });
  add([](GpuWork& work) { work.shape.dynamic_shared = 1; });
  EXPECT_EQ(sums.size(), kWorkKinds + 10);
  add([](GpuWork& work) { work.grid[0] = 9; });
  EXPECT_EQ(sums.size(), kWorkKinds + 10) << "the grid is not in the key";
  EXPECT_THAT(sums.sum(kWorkKinds).last_grid, ElementsAre(9, 2, 1));
  add([](GpuWork& work) { work.origin.range = 2; });
  EXPECT_EQ(sums.size(), kWorkKinds + 10) << "nor is the range";
}

TEST(KernelSums, OneNameAtTwoAddressesIsOneKernel) {
  KernelSums sums({});
  const std::string first = "a name that is long enough", second = first;
  sums.Add(Kernel(first.c_str(), 1, 2));
  sums.Add(Kernel(second.c_str(), 1, 2));
  EXPECT_EQ(sums.size(), kWorkKinds + 1);
}

TEST(KernelSums, WhatThereIsNoRoomForIsInTheTotals) {
  KernelSums sums({.max_sums = 2});
  const char* const name = "add";
  for (uint32_t path = 1; path <= 5; ++path) sums.Add(Kernel(name, 1000, 1010, path));
  GpuWork copy = Kernel("copy", 1000, 1010, 9);
  copy.kind = WorkKind::kCopy;
  copy.bytes = 64;
  sums.Add(copy);
  sums.Add(Kernel(name, 1000, 1010, 2));
  EXPECT_EQ(sums.size(), kWorkKinds + 2);
  EXPECT_EQ(sums.sum(kWorkKinds + 1).count, 2U) << "what has a sum keeps it";
  EXPECT_EQ(sums.sum(static_cast<size_t>(WorkKind::kKernel)).count, 3U);
  EXPECT_EQ(sums.sum(static_cast<size_t>(WorkKind::kCopy)).count, 1U);
  EXPECT_EQ(sums.sum(static_cast<size_t>(WorkKind::kCopy)).bytes, 64U);
  EXPECT_EQ(sums.overflowed(), 4U);
  EXPECT_EQ(sums.count(), 7U);
  EXPECT_EQ(CountOfAll(sums), 7U);
}

TEST(KernelSums, KernelsThereIsNoRoomForKeepTheirPath) {
  KernelSums sums({.max_kernels = 2});
  std::deque<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("kernel " + std::to_string(i));
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : names) sums.Add(Kernel(name.c_str(), 1, 2));
  }
  ASSERT_EQ(sums.size(), kWorkKinds + 2);
  EXPECT_EQ(sums.sum(kWorkKinds).count, 2U) << "it is found though addresses were forgotten";
  EXPECT_EQ(sums.key(kWorkKinds + 1).kernel, KernelTable::kOtherKernels);
  EXPECT_EQ(sums.key(kWorkKinds + 1).origin.path, 1U);
  EXPECT_EQ(sums.sum(kWorkKinds + 1).count, 198U);
  EXPECT_EQ(sums.overflowed(), 198U) << "that several are one is told";
}

TEST(KernelSums, WorkWithoutTimesIsCountedApart) {
  KernelSums sums({.max_spans = 4});
  const char* const name = "add";
  sums.Add(Kernel(name, 0, 0));
  sums.Add(Kernel(name, 1000, 10));
  sums.Add(Kernel(name, 1000, 1010));
  EXPECT_EQ(sums.sum(kWorkKinds).untimed, 2U);
  EXPECT_EQ(sums.sum(kWorkKinds).count, 1U);
  EXPECT_EQ(sums.sum(kWorkKinds).min_ns, 10U);
  EXPECT_EQ(sums.Spans().size(), 1U);
}

TEST(KernelSums, IsAsNewOnceItIsCleared) {
  KernelSums sums({.max_sums = 1, .max_spans = 2});
  for (int64_t i = 1; i <= 5; ++i) sums.Add(Kernel(i % 2 == 0 ? "add" : "mul", i, 10 * i));
  sums.Clear();
  EXPECT_EQ(sums.size(), kWorkKinds);
  EXPECT_EQ(sums.count() + sums.total_ns() + sums.overflowed() + sums.spans_lost(), 0U);
  EXPECT_TRUE(sums.Spans().empty());
  sums.Add(Kernel("sub", 1, 3));
  ASSERT_EQ(sums.size(), kWorkKinds + 1);
  EXPECT_EQ(sums.sum(kWorkKinds).total_ns, 2U);
  EXPECT_EQ(sums.kernels().name(sums.key(kWorkKinds).kernel), "sub");
}

TEST(KernelSums, TheLongestAreInTheLastBucket) {
  KernelSums sums({});
  sums.Add(Kernel("a day", 1, 86'400'000'000'001));
  EXPECT_EQ(sums.sum(kWorkKinds).buckets.back(), 1U);
}

TEST(KernelSums, OfATimelineHasBytesAndMomentsThatCanBe) {
  KernelSums sums({.max_spans = 3});
  GpuWork copy = Kernel("copy", 10, 20);
  copy.kind = WorkKind::kCopy;
  copy.bytes = 1'000;
  sums.Add(copy);
  sums.Add(Kernel("add", -20, -10));
  const auto spans = sums.Spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].bytes, 1'000U);
  EXPECT_EQ(sums.spans_lost(), 1U);
  EXPECT_EQ(sums.count(), 2U);
}

TEST(KernelSums, KeepsTheLastSpans) {
  KernelSums sums({.max_spans = 3});
  for (int64_t i = 1; i <= 5; ++i) sums.Add(Kernel("add", 10 * i, 10 * i + 1));
  const auto spans = sums.Spans();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].begin_ns, 30);
  EXPECT_EQ(spans[2].begin_ns, 50);
  EXPECT_EQ(spans[2].end_ns, 51);
  EXPECT_EQ(sums.key(spans[2].sum).stream, 7U);
  EXPECT_EQ(sums.spans_lost(), 2U);
}

}  // namespace
}  // namespace pystrobe::gpu
