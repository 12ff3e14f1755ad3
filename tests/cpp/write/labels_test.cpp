// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/write/number_text.h"

namespace pystrobe::write {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LabelsTest, ThreadsAreToldApart) {
  Tables tables;
  const StringId name = tables.Intern("worker");
  EXPECT_EQ(ThreadLabel({.tid = 7, .name = name}, tables), "worker [7]");
  EXPECT_EQ(ThreadLabel({.tid = 8}, tables), "thread [8]");
  EXPECT_EQ(ThreadLabel({.tid = 7, .interpreter = 2, .name = name}, tables),
            "worker [7, interpreter 2]");
}

TEST(LabelsTest, TheTitleIsTheBestThereIs) {
  EXPECT_EQ(Title({.command = {"python3", "a.py"}}, {.title = "mine"}), "mine");
  EXPECT_EQ(Title({.command = {"python3", "a.py"}}, {}), "python3 a.py");
  EXPECT_EQ(Title({.executable = "/usr/bin/python3"}, {}), "/usr/bin/python3");
  EXPECT_EQ(Title({}, {}), "pystrobe");
}

Quality GoodRun() {
  return {.deadlines = 9874,
          .samples = 9874,
          .taken = 9874,
          .proved = 9874,
          .duration_ns = 10'000'000'000,
          .held_ns = 38'000'000,
          .run_delay_ns = 41'000'000,
          .own_cpu_ns = 210'000'000,
          .achieved_rate_hz = 987.4,
          .final_rate_hz = 1000,
          .complete = true,
          .cpu_source = "schedstat"};
}

TEST(QualityLineTest, AGoodRun) {
  EXPECT_EQ(QualityLine({.wanted_rate_hz = 1000}, GoodRun()),
            "9,874 samples at 987 of 1,000 Hz; all proved exact; 0 late, 0 lost; target held "
            "38.0 ms (0.38 %), of 41.0 ms that it waited for a CPU in all; own CPU 2.1 %");
}

TEST(QualityLineTest, DoubtIsNeverRoundedAway) {
  Quality quality = GoodRun();
  quality.proved = 9873;
  quality.marked = 1;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("99.9 % proved exact, 1 marked as unproved"));
  quality.proved = 0;
  quality.marked = 9874;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("none proved exact"));
}

TEST(QualityLineTest, SaysThatTheRateWasLowered) {
  const Metadata metadata{.wanted_rate_hz = 1000, .max_overhead = 0.01};
  Quality quality = GoodRun();
  EXPECT_THAT(QualityLine(metadata, quality), Not(HasSubstr("lowered")));
  quality.final_rate_hz = 412;
  EXPECT_THAT(QualityLine(metadata, quality),
              HasSubstr(" of 1,000 Hz, lowered to hold the target about 1.0 % of its time; all"));
}

TEST(QualityLineTest, SaysThatTheRateWasLoweredForAWhile) {
  Quality quality = GoodRun();
  quality.deadlines = 5000;
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
              HasSubstr(", lowered to hold"));
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000}, quality), Not(HasSubstr("lowered")));
  quality.deadlines = 3;
  quality.duration_ns = 5'000'000;  // chance, in so short a time
  EXPECT_THAT(QualityLine({.wanted_rate_hz = 1000, .max_overhead = 0.01}, quality),
              Not(HasSubstr("lowered")));
}

TEST(QualityLineTest, ManyLostHaveACure) {
  Quality quality = GoodRun();
  quality.lost = 900;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr("900 lost; target held"));
  quality.lost = 1000;
  EXPECT_THAT(QualityLine({}, quality),
              HasSubstr("1,000 lost (more deadlines than the machine could meet: ask for a lower "
                        "rate, or free a CPU); target held"));
}

TEST(QualityLineTest, TellsTheUnusual) {
  Quality quality = GoodRun();
  quality.proved -= 3;
  quality.incomplete = 3;
  quality.unresolved = 2;
  quality.complete = false;
  quality.cpu_source = "stat";
  const std::string line = QualityLine({}, quality);
  EXPECT_THAT(line, HasSubstr("; 99.9 % proved exact; 0 late"));
  EXPECT_THAT(line, HasSubstr("3 incomplete, 2 frames without a name"));
  quality.unresolved = 1;
  EXPECT_THAT(QualityLine({}, quality), HasSubstr(", 1 frame without a name;"));
  EXPECT_THAT(line, HasSubstr("10 ms ticks"));
  EXPECT_THAT(line, HasSubstr("cut off"));
}

TEST(QualityLineTest, NothingWasSampled) {
  EXPECT_EQ(QualityLine({.wanted_rate_hz = 1000}, {.complete = true}),
            "0 samples at 0 of 1,000 Hz; 0 late, 0 lost; target held 0 s (0 %); own CPU 0 %");
}

TEST(NumberTextTest, ShowsTheDigitsThatMatter) {
  EXPECT_EQ(GroupDigits(0), "0");
  EXPECT_EQ(GroupDigits(999), "999");
  EXPECT_EQ(GroupDigits(1'234'567), "1,234,567");
  EXPECT_EQ(RateText(0), "0");
  EXPECT_EQ(RateText(0.4), "0.4");
  EXPECT_EQ(RateText(99.96), "100");
  EXPECT_EQ(RateText(12'345.4), "12,345");
  EXPECT_EQ(TimeText(0), "0 s");
  EXPECT_EQ(TimeText(999), "999 ns");
  EXPECT_EQ(TimeText(999'499), "999 us");
  EXPECT_EQ(TimeText(999'500), "1.00 ms");
  EXPECT_EQ(TimeText(12'345'678), "12.3 ms");
  EXPECT_EQ(TimeText(4'520'000'000), "4.52 s");
  EXPECT_EQ(TimeText(36'000'000'000'000), "36,000 s");
  EXPECT_EQ(PercentText(0), "0");
  EXPECT_EQ(PercentText(0.0000001), "<0.001");
  EXPECT_EQ(PercentText(0.0038), "0.38");
  EXPECT_EQ(PercentText(0.452), "45.2");
}

TEST(LabelsTest, OriginLineLeavesOutWhatIsNotKnown) {
  EXPECT_EQ(OriginLine({}), "pystrobe");
  EXPECT_EQ(OriginLine({.pid = 12,
                        .python_version = "3.13.0",
                        .host = "h",
                        .pystrobe_version = "0.1.0",
                        .pause_mode = "preempt"}),
            "pystrobe 0.1.0, Python 3.13.0, process 12 on h, pause preempt");
}

}  // namespace
}  // namespace pystrobe::write
