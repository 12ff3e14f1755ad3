// SPDX-License-Identifier: Apache-2.0
#include "gpu/occupancy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/gpu/mock_driver.h"

namespace pystrobe::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using enum OccupancyLimit;

constexpr uint32_t kKilobyte = 1024;

// As cuDeviceGetAttribute has them of an H200.
constexpr DeviceLimits kH200{.compute_major = 9,
                             .multiprocessors = 132,
                             .warp_size = 32,
                             .threads_per_block = 1024,
                             .threads_per_multiprocessor = 2048,
                             .registers_per_block = 65536,
                             .registers_per_multiprocessor = 65536,
                             .shared_per_block = 48 * kKilobyte,
                             .shared_per_block_optin = 227 * kKilobyte,
                             .shared_per_multiprocessor = 228 * kKilobyte,
                             .shared_reserved = kKilobyte};

BlockShape Shape(uint32_t threads, uint32_t registers, uint32_t dynamic_shared = 0,
                 uint32_t static_shared = 0) {
  return {.block = {threads, 1, 1},
          .registers = registers,
          .static_shared = static_shared,
          .dynamic_shared = dynamic_shared};
}

Occupancy Of(const BlockShape& shape, uint32_t blocks = 132 * 32) {
  auto occupancy = OccupancyOf(kH200, shape, {blocks, 1, 1});
  EXPECT_TRUE(occupancy) << occupancy.error().message;
  return occupancy.value_or(Occupancy{});
}

// A multiprocessor holds 64 warps in 4 parts, 32 blocks, 65,536 registers and 228 KB.
std::vector<std::string> Advice(const BlockShape& shape, uint32_t blocks) {
  return OccupancyAdvice(kH200, shape, {blocks, 1, 1}, Of(shape, blocks));
}

TEST(Occupancy, ThreadsAndRegistersThatJustFit) {
  // 4 warps of 32 x 32 registers: 16 blocks by both.
  const Occupancy found = Of(Shape(128, 32));
  EXPECT_EQ(found.blocks_per_multiprocessor, 16);
  EXPECT_EQ(found.theoretical, 1);
  EXPECT_THAT(found.limits, ElementsAre(kWarps, kRegisters));
}

TEST(Occupancy, Registers) {
  // A part has 16,384: 4 warps of 32 x 128. 16 warps are 2 blocks of 8.
  const Occupancy found = Of(Shape(256, 128));
  EXPECT_EQ(found.blocks_per_multiprocessor, 2);
  EXPECT_EQ(found.theoretical, 0.25);
  EXPECT_THAT(found.limits, ElementsAre(kRegisters));
}

TEST(Occupancy, Blocks) {
  const Occupancy found = Of(Shape(32, 16));
  EXPECT_EQ(found.blocks_per_multiprocessor, 32);
  EXPECT_EQ(found.theoretical, 0.5);
  EXPECT_THAT(found.limits, ElementsAre(kBlocks));
}

TEST(Occupancy, ABlockThatDoesNotFillItsLastWarp) {
  // 33 threads are 2 warps: 32 blocks.
  EXPECT_EQ(Of(Shape(33, 16)).theoretical, 1);
  EXPECT_THAT(Of(Shape(33, 16)).limits, ElementsAre(kWarps, kBlocks));
}

TEST(Occupancy, SharedMemoryBelowWhatNeedNotBeAskedFor) {
  // 32 KB and the driver's 1 KB: 6 blocks of 8 warps.
  const Occupancy found = Of(Shape(256, 32, 0, 32 * kKilobyte));
  EXPECT_EQ(found.blocks_per_multiprocessor, 6);
  EXPECT_EQ(found.theoretical, 0.75);
  EXPECT_THAT(found.limits, ElementsAre(kSharedMemory));
}

TEST(Occupancy, SharedMemoryThatMustBeAskedFor) {
  // 101 KB: 2 blocks. A calculator that does not know of asking finds 0.
  const Occupancy found = Of(Shape(256, 32, 100 * kKilobyte));
  EXPECT_EQ(found.blocks_per_multiprocessor, 2);
  EXPECT_EQ(found.theoretical, 0.25);
  EXPECT_THAT(found.limits, ElementsAre(kSharedMemory));
  EXPECT_EQ(Of(Shape(256, 32, 227 * kKilobyte)).blocks_per_multiprocessor, 1);
  EXPECT_EQ(Of(Shape(256, 32, 220 * kKilobyte, 7 * kKilobyte)).blocks_per_multiprocessor, 1);
}

TEST(Occupancy, AMatrixProductOfCublas) {
  // 12 warps of 32 x 168 registers, 3 in a part; ncu too has 18.75 %.
  const Occupancy found = Of(Shape(384, 168, 210 * kKilobyte));
  EXPECT_EQ(found.blocks_per_multiprocessor, 1);
  EXPECT_EQ(found.theoretical, 0.1875);
  EXPECT_THAT(found.limits, ElementsAre(kRegisters, kSharedMemory));
}

TEST(Occupancy, WavesAndTheirTail) {
  const BlockShape shape = Shape(128, 32);  // 16 x 132 = 2,112 blocks at once
  EXPECT_EQ(Of(shape, 2'112).waves, 1);
  EXPECT_EQ(Of(shape, 2'112).tail_efficiency, 1);
  EXPECT_EQ(Of(shape, 528).waves, 0.25);
  EXPECT_EQ(Of(shape, 528).tail_efficiency, 0.25);
  EXPECT_EQ(Of(shape, 5'280).waves, 2.5);
  EXPECT_NEAR(Of(shape, 5'280).tail_efficiency, 2.5 / 3, 1e-12);
  EXPECT_NEAR(Of(shape, 2'113).tail_efficiency, 0.5, 1e-3);
  EXPECT_EQ(OccupancyOf(kH200, shape, {132, 16, 2})->waves, 2);
}

TEST(Occupancy, WavesOfClusters) {
  BlockShape shape = Shape(384, 168, 210 * kKilobyte);
  shape.cluster = {2, 1, 1};
  shape.max_clusters = 60;  // some multiprocessors have no neighbour free
  const Occupancy found = Of(shape, 300);
  EXPECT_EQ(found.waves, 2.5);
  EXPECT_EQ(found.blocks_per_multiprocessor, 1);
  EXPECT_DOUBLE_EQ(found.theoretical, 0.1875 * 120 / 132);
  EXPECT_THAT(found.limits, ElementsAre(kRegisters, kSharedMemory, kClusters));
  EXPECT_THAT(
      Advice(shape, 300),
      Contains(HasSubstr("17 % of the warps fit, for 168 registers a thread and 210.0 KB of "
                         "shared memory a block and clusters of 2 blocks, which some")));

  shape.max_clusters = 66;  // all of them
  EXPECT_DOUBLE_EQ(Of(shape, 300).theoretical, 0.1875);
  EXPECT_THAT(Of(shape, 300).limits, ElementsAre(kRegisters, kSharedMemory));
}

TEST(Occupancy, WhatCannotBeIsAnError) {
  const auto message = [](const DeviceLimits& device, const BlockShape& shape) {
    const auto found = OccupancyOf(device, shape, {1, 1, 1});
    return found ? std::string() : found.error().message;
  };
  DeviceLimits later = kH200;
  later.compute_major = 99;
  EXPECT_THAT(message(later, Shape(128, 32)), HasSubstr("capability 99.0: it is not known here"));
  EXPECT_THAT(message(kH200, Shape(0, 32)), HasSubstr("not valid"));
  EXPECT_THAT(message(kH200, Shape(1024, 255)), HasSubstr("fit nowhere"));
  EXPECT_THAT(message(kH200, Shape(128, 32, 228 * kKilobyte)), HasSubstr("fit nowhere"));
}

TEST(OccupancyAdvice, IsOfWhatMayBeBetter) {
  EXPECT_THAT(Advice(Shape(128, 32), 2'112 * 8), IsEmpty());
  EXPECT_THAT(Advice(Shape(128, 32), 100),
              ElementsAre(HasSubstr("100 blocks on 132 multiprocessors, fewer than 4 each")));
  EXPECT_THAT(Advice(Shape(128, 32), 527), Contains(HasSubstr("fewer than 4")));
  EXPECT_THAT(Advice(Shape(128, 32), 528), IsEmpty());
  EXPECT_THAT(Advice(Shape(128, 32), 2'323),
              ElementsAre(HasSubstr("1.10 waves: the last leaves 45 % of the device's time unused; "
                                    "a grid of whole waves (2112 blocks each)")));
  EXPECT_THAT(Advice(Shape(256, 128), 132 * 2 * 10),
              ElementsAre(HasSubstr("25 % of the warps fit, for 128 registers a thread")));
  EXPECT_THAT(
      Advice(Shape(384, 168, 210 * kKilobyte), 132 * 4),
      ElementsAre(HasSubstr("19 % of the warps fit, for 168 registers a thread and 210.0 KB "
                            "of shared memory a block")));
}

TEST(DeviceLimits, AreReadFromTheDriver) {
  const MockDriver driver;
  driver.Begin();
  const auto limits = ReadDeviceLimits(0);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->compute_major, 9);
  EXPECT_EQ(limits->compute_minor, 0);
  EXPECT_EQ(limits->multiprocessors, 4);
  EXPECT_EQ(limits->warp_size, 32);
  EXPECT_EQ(limits->threads_per_block, 1024);
  EXPECT_EQ(limits->threads_per_multiprocessor, 2048);
  EXPECT_EQ(limits->registers_per_block, 65536);
  EXPECT_EQ(limits->registers_per_multiprocessor, 65536);
  EXPECT_EQ(limits->shared_per_block, 48 * 1024);
  EXPECT_EQ(limits->shared_per_block_optin, 227 * 1024);
  EXPECT_EQ(limits->shared_per_multiprocessor, 228 * 1024);
  EXPECT_EQ(limits->shared_reserved, 1024);
  EXPECT_EQ(OccupancyOf(*limits, Shape(128, 32), {64, 1, 1})->waves, 1);
  EXPECT_THAT(ReadDeviceLimits(7).error().message, HasSubstr("device 7"));
}

}  // namespace
}  // namespace pystrobe::gpu
