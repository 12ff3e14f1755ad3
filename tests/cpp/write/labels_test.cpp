// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/labels.h"

#include <gtest/gtest.h>

namespace pystrobe::write {
namespace {

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

TEST(LabelsTest, QualityLineOfAGoodRun) {
  const Quality quality{.taken = 9'998,
                        .proved = 9'996,
                        .marked = 2,
                        .late = 3,
                        .lost = 2,
                        .duration_ns = 10'000'000'000,
                        .held_ns = 45'000'000,
                        .own_cpu_ns = 210'000'000,
                        .achieved_rate_hz = 999.8,
                        .complete = true};
  EXPECT_EQ(QualityLine({.wanted_rate_hz = 1000}, quality),
            "9,998 samples at 999.8 Hz (wanted 1000): 9,996 proved exact, 2 marked, 3 late, "
            "2 lost; target held 45.0 ms (0.45 %), own CPU 210.0 ms (2.1 %)");
}

TEST(LabelsTest, QualityLineTellsWhatWentWrong) {
  const Quality quality{.taken = 1'234'567, .incomplete = 4, .unresolved = 5};
  EXPECT_EQ(QualityLine({}, quality),
            "1,234,567 samples: 0 proved exact, 0 marked, 4 incomplete, 0 late, 0 lost, 5 frames "
            "unresolved; cut off, figures as of the last block");
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
