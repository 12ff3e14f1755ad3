// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/gpu_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/print/report.h"
#include "profiler/print/text.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/text_lines.h"

namespace pystrobe::print {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinesOf;
using testing::LineWith;
using testing::MemoryRecording;
using ::testing::Not;

class GpuTableTest : public ::testing::Test {
 protected:
  GpuTableTest() {
    record_ = testing::MakeGpuExample(recording_.mutable_tables());
    recording_.SetGpu(record_);
  }

  std::string Table(const TableOptions& options = {}) {
    recording_.SetGpu(record_);
    return FormatGpuTable(recording_, options);
  }

  std::string Report(Mode mode, std::string_view how = "") {
    const Profile profile = Fold(recording_, {.work = WorkOf(mode)}).value();
    return FormatReport(profile,
                        {.table = {.mode = mode, .top = {}, .terminal = {}, .directory = ""},
                         .thread = {},
                         .how_to_show_gpu = how});
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(GpuTableTest, ShowsNumbersAndPlaces) {
  const std::string text = Table({.terminal = {.width = 200}});
  EXPECT_THAT(text, HasSubstr("What GPUs did: 613 ms in 2,100 kernels, 10.5 ms in 10 copies, 4.00 "
                              "us in 4 sets (GPU 0: NVIDIA H100)."));
  EXPECT_EQ(LineWith(text, "time %"),
            " time %      count     time     mean      min      max  kernel");
  EXPECT_EQ(LineWith(text, "   96.4"),
            "   96.4      1,000   601 ms   601 us   600 us  1.60 ms  gemm<float, 128>");
  EXPECT_EQ(LineWith(text, "264"), "") << "a grid is none that all had";
  EXPECT_EQ(LineWith(text, "256 threads"),
            "         launched by step (app.py:5); 256 threads a block, occupancy 50 %, 0.5 waves "
            "(50 % of the device busy); the grid is small: half of the device has no work");
  EXPECT_THAT(text, HasSubstr("launched by load (app.py:20); 0.671 GB at 63.9 GB/s"));
}

TEST_F(GpuTableTest, LeavesOutWhatHardlyMattersUnlessAsked) {
  EXPECT_THAT(Table(), HasSubstr("    0.0  in 1 other; --top 5 shows all"));
  EXPECT_THAT(Table({.top = 5}), AllOf(Not(HasSubstr("other")), HasSubstr("outside of Python"),
                                       HasSubstr("1 more without times")));
  EXPECT_THAT(Table({.top = 1}), HasSubstr("    3.6  in 4 others; --top 5 shows all"));
}

TEST_F(GpuTableTest, ShowsTwentyRowsAtMost) {
  for (int i = 0; i < 30; ++i) {
    record_.kernels.push_back(testing::MakeGpuKernel(
        recording_.mutable_tables(), GpuWorkKind::kKernel, "k" + std::to_string(i), "k"));
    record_.sums.push_back(testing::MakeGpuSum(
        kEmptyStack, static_cast<uint32_t>(record_.kernels.size() - 1), 1, 500'000'000, 1));
  }
  EXPECT_THAT(Table(), HasSubstr("in 15 others"));
}

TEST_F(GpuTableTest, FitsTheTerminal) {
  record_.kernels[0].short_name = recording_.mutable_tables().Intern(
      "cutlass::Kernel<" + std::string(300, 'x') + ", (anonymous namespace)::y>::run");
  for (const int width : {80, 100, 120}) {
    for (const std::string& line : LinesOf(Table({.terminal = {.width = width}}))) {
      EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
  EXPECT_THAT(Table(), HasSubstr("cutlass::Kernel::run"));
}

TEST_F(GpuTableTest, WhatTellsKernelsApartIsNotCut) {
  for (const std::string type : {"float", "int"}) {
    record_.kernels.push_back(testing::MakeGpuKernel(
        recording_.mutable_tables(), GpuWorkKind::kKernel,
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<" + type +
            ">, std::array<char*, 1ul> >(int, at::native::FillFunctor<" + type + ">)",
        "at::native::vectorized_elementwise_kernel"));
    record_.sums.push_back(testing::MakeGpuSum(
        kEmptyStack, static_cast<uint32_t>(record_.kernels.size() - 1), 1, 500'000'000, 1));
  }
  const std::string text = Table({.terminal = {.width = 80}});
  EXPECT_THAT(text, HasSubstr("nel<FillFunctor<float>>\n"));
  EXPECT_THAT(text, HasSubstr("nel<FillFunctor<int>>\n"));
}

TEST_F(GpuTableTest, IsSafeToPrintAndColoured) {
  record_.kernels[0].short_name = recording_.mutable_tables().Intern("\x1b[2J\nname");
  record_.sums[0].advice = recording_.mutable_tables().Intern("advice\x1b");
  record_.devices[0].name = recording_.mutable_tables().Intern("device\x1b");
  record_.quality.source = recording_.mutable_tables().Intern("source\x1b");
  EXPECT_THAT(Table(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FormatGpuQuality(recording_, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Table({.terminal = {.color = true}}), HasSubstr("\x1b[1;31m   96.4\x1b[0m"));
}

TEST_F(GpuTableTest, OfNothingSaysSo) {
  record_.sums.clear();
  EXPECT_EQ(Table(), "What GPUs did: nothing (GPU 0: NVIDIA H100).\n");
}

TEST_F(GpuTableTest, StandsBelowTheFunctionsOfItsMode) {
  const std::string text = Report(Mode::kGpu, "pystrobe report a.strobe --gpu");
  EXPECT_THAT(text,
              HasSubstr("of gpu time (as the device told it, by what launched it): 2 streams"));
  EXPECT_THAT(LineWith(text, "self %"), HasSubstr("count self %"));
  EXPECT_THAT(LineWith(text, "step  "), HasSubstr("  2,100   98.3     98.3    613 ms  step"));
  EXPECT_THAT(LineWith(text, "train"), HasSubstr("0    0.0    100.0"));
  EXPECT_EQ(LineWith(text, "<gpu>"), "") << "its kernels have a table of their own";
  EXPECT_THAT(text, HasSubstr("\nWhat GPUs did: "));
  EXPECT_THAT(text, HasSubstr("\nQuality of the GPU's figures: fair (times missing); "));
  EXPECT_THAT(text, Not(HasSubstr("samples")));
  EXPECT_THAT(text, Not(HasSubstr("--gpu")));
}

TEST_F(GpuTableTest, IsOneLineInOtherModes) {
  const std::string text = Report(Mode::kWall, "pystrobe report a.strobe --gpu");
  EXPECT_THAT(text, HasSubstr("\nGPU: 613 ms in 2,100 kernels, 10.5 ms in 10 copies, 4.00 us in 4 "
                              "sets:\n  pystrobe report a.strobe --gpu\nQuality: "));
  EXPECT_THAT(Report(Mode::kWall), Not(HasSubstr("GPU")));
  recording_.SetGpu({});
  EXPECT_THAT(Report(Mode::kWall, "how"), Not(HasSubstr("GPU"))) << "it did nothing";
}

}  // namespace
}  // namespace pystrobe::print
