// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/range_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/print/report.h"
#include "profiler/print/text.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/range_example.h"
#include "tests/cpp/support/text_lines.h"

namespace pystrobe::print {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinesOf;
using testing::MemoryRecording;
using ::testing::Not;
using ::testing::StartsWith;

class RangeTableTest : public ::testing::Test {
 protected:
  RangeTableTest() { record_ = testing::MakeRangeExample(recording_.mutable_tables(), 0, 1); }

  std::string Table(const TableOptions& options = {}) {
    recording_.SetRanges(record_);
    return FormatRangeTable(recording_, options);
  }

  std::string Report(Mode mode, std::optional<std::string> thread = {}) {
    recording_.SetRanges(record_);
    const FoldOptions fold{.thread = thread, .work = WorkOf(mode)};
    const auto profile = Fold(recording_, fold);
    EXPECT_TRUE(profile);
    ReportOptions options;
    options.table.mode = mode;
    options.of_a_part = thread.has_value();
    options.thread = thread;
    return FormatReport(*profile, options);
  }

  StringId Name(std::string_view name) { return recording_.mutable_tables().Intern(name); }

  MemoryRecording recording_;
  RangeRecord record_;
};

TEST_F(RangeTableTest, IsATreeWithTheTimesOfBothSides) {
  EXPECT_EQ(Table(),
            "Ranges that the program named: 5, begun 8 times.\n"
            "     count     host     mean GPU span     busy     works  range\n"
            "         2  3.50 ms  1.75 ms  3.90 ms  3.90 ms         6  step x2\n"
            "         2   240 us   120 us  1.21 ms  1.21 ms         2    forward\n"
            "         2   100 us  50.0 us   100 us   100 us         1    backward\n"
            "         1  20.0 us  20.0 us                                  NCCL: all_reduce\n"
            "         1  2.00 ms  2.00 ms                              load ahead\n"
            "\n"
            "host: elapsed, from begin to end; GPU span: from the start of the first work\n"
            "  launched in it to the end of the last; busy: what the works took of that; x2:\n"
            "  of 2 streams together\n");
}

TEST_F(RangeTableTest, WithoutAnyGpuHasTheHostsTimeAlone) {
  record_.streams.clear();
  record_.overflowed = 2;
  EXPECT_EQ(Table({.top = 2}),
            "Ranges that the program named: 5, begun 8 times; 2 of these stand together, as\n"
            "  there was no room for more names.\n"
            "     count     host     mean  range\n"
            "         2  3.50 ms  1.75 ms  step\n"
            "         1  2.00 ms  2.00 ms  load ahead\n"
            "         3  others; --top 5 shows all\n"
            "\n"
            "host: elapsed, from begin to end\n");
}

TEST_F(RangeTableTest, LeavesOutWhatHardlyMattersUnlessAsked) {
  record_.ranges.push_back({.parent = 1, .name = Name("tiny"), .count = 1, .host_ns = 10});
  record_.ranges.push_back({.parent = 5, .name = Name("within"), .count = 1, .host_ns = 5'000'000});
  EXPECT_THAT(Table(), AllOf(HasSubstr("\n         2  others; --top 7 shows all\n"),
                             Not(HasSubstr("tiny")), Not(HasSubstr("within"))));
  EXPECT_THAT(Table({.top = 7}), AllOf(HasSubstr("      tiny\n"), HasSubstr("        within\n"),
                                       Not(HasSubstr("other"))));
  EXPECT_THAT(Table({.top = 6}), HasSubstr("\n         1  other; --top 7 shows all\n"));
  record_ = {.ranges = {{.name = Name("no time"), .count = 1}, {.name = Name("none either")}}};
  EXPECT_THAT(Table(), AllOf(HasSubstr("no time"), HasSubstr("none either")));
}

TEST_F(RangeTableTest, ShowsTwentyAtMostAndThoseAroundThem) {
  for (uint32_t i = 0; i < 100; ++i) {
    record_.ranges.push_back(
        {.parent = 3, .name = Name(fmt::format("r{}", i)), .count = 1, .host_ns = 5'000 + i});
  }
  const std::string text = Table();
  EXPECT_THAT(text, AllOf(HasSubstr("all_reduce"), HasSubstr("        r99\n"),
                          Not(HasSubstr("        r3\n")), HasSubstr("85  others")));
  EXPECT_EQ(LinesOf(text).size(), 2 + 20 + 1 + 1 + 3);
}

TEST_F(RangeTableTest, FitsTheTerminalHoweverDeepItIs) {
  for (uint32_t i = 4; i < 60; ++i) {
    record_.ranges.push_back({.parent = i,
                              .name = Name(fmt::format("{}{}", i, std::string(300, 'x'))),
                              .count = 1'000'000,
                              .host_ns = 1'900'000});
    record_.streams.push_back({.range = i + 1, .stream = 7, .span_ns = 1, .works = 1'000'000});
    record_.streams.push_back({.range = i + 1, .stream = 8});
  }
  for (const int width : {80, 100, 120}) {
    const std::string text = Table({.top = 100, .terminal = {.width = width}});
    for (const std::string& line : LinesOf(text)) EXPECT_LE(DisplayWidth(line), width) << line;
    EXPECT_THAT(text, HasSubstr(" 59xxx"));
  }
}

TEST_F(RangeTableTest, IsSafeToPrint) {
  record_.ranges[0].name = Name("\x1b[2J\nname");
  record_.ranges[1].domain = Name("domain\x1b");
  record_.ranges[2].domain = Name("pystrobe");
  EXPECT_THAT(Table(), AllOf(Not(HasSubstr("\x1b")), HasSubstr("  backward"), HasSubstr("name")));
}

TEST_F(RangeTableTest, StandsBelowTheKernels) {
  recording_.SetGpu(testing::MakeGpuExample(recording_.mutable_tables()));
  const std::string text = Report(Mode::kGpu);
  EXPECT_LT(text.find("What GPUs did: "), text.find("\nRanges that the program named: "));
  EXPECT_LT(text.find("load ahead"), text.find("\nQuality of the GPU's figures: "));
  EXPECT_THAT(Report(Mode::kWall), Not(HasSubstr("Ranges"))) << "that is of the GPU's table";
  EXPECT_THAT(Report(Mode::kGpu, "stream 13"), HasSubstr("  2.50 ms  2.50 ms         2  step\n"));
}

TEST_F(RangeTableTest, WithoutAGpuStandsBelowTheFunctions) {
  record_.streams.clear();
  const std::string text = Report(Mode::kWall);
  EXPECT_LT(text.find("\nRanges that the program named: "), text.find("\nQuality: "));
  EXPECT_FALSE(HasRangesAlone(recording_, {}));
  EXPECT_TRUE(HasRangesAlone(recording_, Mode::kGpu));
  EXPECT_THAT(FormatRangeReport(recording_, {}, {}),
              AllOf(StartsWith("The recording does not tell what a GPU did"),
                    HasSubstr("load ahead"), HasSubstr("\nQuality: ")));
  recording_.mutable_metadata().pause_mode = kOfGpu;
  EXPECT_TRUE(HasRangesAlone(recording_, {}));
  EXPECT_FALSE(HasRangesAlone(recording_, Mode::kWall));
  recording_.SetGpu({});
  EXPECT_FALSE(HasRangesAlone(recording_, Mode::kGpu));
}

TEST_F(RangeTableTest, OfNothingIsNothing) {
  EXPECT_EQ(FormatRangeTable(recording_, {}), "");
  EXPECT_FALSE(HasRangesAlone(recording_, Mode::kGpu));
  record_ = {};
  EXPECT_EQ(Table(), "");
}

}  // namespace
}  // namespace pystrobe::print
