// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/gpu_example.h"

namespace pystrobe {
namespace {

using ::testing::ElementsAre;
using testing::MakeGpuExample;
using testing::MakeGpuKernel;
using testing::MakeGpuSum;
using testing::MakeStack;
using testing::MemoryRecording;

class GpuTableTest : public ::testing::Test {
 protected:
  Tables& tables() { return recording_.mutable_tables(); }

  GpuTable Table(const std::optional<std::string>& stream = {}) {
    recording_.SetGpu(record_);
    return MakeGpuTable(recording_, stream);
  }

  std::vector<std::string> Names(const GpuTable& table) {
    std::vector<std::string> names;
    for (const GpuRow& row : table.rows) names.push_back(tables().text(row.short_name));
    return names;
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(GpuTableTest, HasARowForEachKernelByTime) {
  record_ = MakeGpuExample(tables());
  const GpuTable table = Table();
  EXPECT_THAT(Names(table), ElementsAre("gemm<float, 128>", "copy to the device",
                                        "gemm<float, 128>", "relu", "set"))
      << "kept apart where another part of the device is filled";
  const GpuRow& gemm = table.rows[0];
  EXPECT_EQ(gemm.count, 1000U);
  EXPECT_EQ(gemm.total_ns, 999 * 600'000 + 1'600'000U);
  EXPECT_EQ(gemm.min_ns, 600'000U);
  EXPECT_EQ(gemm.max_ns, 1'600'000U);
  EXPECT_DOUBLE_EQ(gemm.mean_ns(), 601'000);
  EXPECT_EQ(gemm.block[0], 256U);
  EXPECT_EQ(gemm.grid[0], 264U);
  EXPECT_EQ(gemm.occupancy, record_.sums[0].occupancy);
  EXPECT_EQ(gemm.advice, record_.sums[0].advice);
  ASSERT_TRUE(gemm.line);
  EXPECT_EQ(tables().frame(*gemm.line).line, 5U);
  EXPECT_FALSE(table.rows[4].line) << "in no Python";
  EXPECT_EQ(table.rows[4].untimed, 1U);
}

TEST_F(GpuTableTest, AddsUpKinds) {
  record_ = MakeGpuExample(tables());
  const GpuTable table = Table();
  EXPECT_EQ(table.kinds[0].count, 2100U);
  EXPECT_EQ(table.kinds[1].count, 10U);
  EXPECT_EQ(table.kinds[2].count, 4U) << "the untimed too";
  EXPECT_EQ(table.total_ns,
            table.kinds[0].total_ns + table.kinds[1].total_ns + table.kinds[2].total_ns);
  EXPECT_THAT(Names(Table("stream 13")), ElementsAre("copy to the device"));
}

TEST_F(GpuTableTest, TellsHowFastCopiesWere) {
  record_ = MakeGpuExample(tables());
  GpuTable table = Table();
  const double bytes = 10.0 * (64 << 20);
  EXPECT_DOUBLE_EQ(table.rows[1].gigabytes_per_second(), bytes / 10'500'000);
  EXPECT_EQ(table.rows[0].gigabytes_per_second(), 0) << "of kernels it is not known";
  record_.sums[3].untimed = 1;
  EXPECT_EQ(Table().rows[1].gigabytes_per_second(), 0) << "nor where times are missing";
}

TEST_F(GpuTableTest, MergesShapesThatFillTheDeviceAlike) {
  record_ = MakeGpuExample(tables());
  record_.sums[1].occupancy = record_.sums[0].occupancy;
  record_.sums[1].occupancy->waves = 7;
  const GpuTable table = Table();
  EXPECT_THAT(Names(table), ElementsAre("gemm<float, 128>", "copy to the device", "relu", "set"));
  EXPECT_EQ(table.rows[0].count, 1100U);
  EXPECT_EQ(table.rows[0].min_ns, 100'000U);
  EXPECT_EQ(table.rows[0].occupancy->waves, 0.5) << "of what took most time";
}

TEST_F(GpuTableTest, NamesTheLineThatLaunchedMostOverAllShapesAndStreams) {
  const StackId one = MakeStack(tables(), {{"f", 1}});
  const StackId other = MakeStack(tables(), {{"g", 2}, {"launch", 0, "libcudart.so", 0, true}});
  const StackId other_again = MakeStack(tables(), {{"h"}, {"g", 2}, {"part", 0, kRegionFile}});
  record_.kernels = {MakeGpuKernel(tables(), GpuWorkKind::kKernel, "k", "k")};
  record_.sums = {MakeGpuSum(one, 0, 9, 100, 100), MakeGpuSum(other, 0, 5, 100, 100),
                  MakeGpuSum(other_again, 0, 5, 100, 100)};
  const GpuTable table = Table();
  ASSERT_EQ(table.rows.size(), 1U);
  ASSERT_TRUE(table.rows[0].line);
  EXPECT_EQ(tables().frame(*table.rows[0].line).line, 2U);
}

TEST_F(GpuTableTest, SaysOfAMedianNoMoreThanIsKnown) {
  record_.kernels = {MakeGpuKernel(tables(), GpuWorkKind::kKernel, "k", "k")};
  const auto median = [this](const GpuSum& sum) {
    record_.sums = {sum};
    return Table().rows[0].median;
  };
  EXPECT_EQ(median(MakeGpuSum(kEmptyStack, 0, 0, 1, 700)), (GpuMedian{512, 700}));
  GpuSum ten = MakeGpuSum(kEmptyStack, 0, 8, 600, 5'000);
  ten.min_ns = 550;
  EXPECT_EQ(median(ten), (GpuMedian{550, 1023})) << "of nine";
  EXPECT_EQ(median(MakeGpuSum(kEmptyStack, 0, 1, 600, 5'000)), (GpuMedian{600, 5'000}))
      << "of two it is between them";
  GpuSum none;
  none.untimed = 3;
  EXPECT_EQ(median(none), std::nullopt);
  GpuSum wrong = MakeGpuSum(kEmptyStack, 0, 1, 600, 5'000);
  wrong.count = 50;
  EXPECT_EQ(median(wrong), std::nullopt) << "buckets that hold less than was counted";
}

}  // namespace
}  // namespace pystrobe
