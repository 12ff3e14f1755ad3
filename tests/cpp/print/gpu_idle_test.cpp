// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/gpu_idle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/print/text.h"
#include "tests/cpp/support/gpu_example.h"

namespace pystrobe::print {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MemoryRecording;
using ::testing::Not;

class GpuIdleTextTest : public ::testing::Test {
 protected:
  GpuIdleTextTest() { record_ = testing::MakeGpuExample(recording_.mutable_tables()); }
  std::string Text(int width = 120) {
    recording_.SetGpu(record_);
    TableOptions options;
    options.terminal.width = width;
    return FormatGpuIdle(recording_, options);
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(GpuIdleTextTest, SaysHowMuchWhyAndWhere) {
  EXPECT_EQ(Text(140),
            "Nothing to do for 1.20 s of 1.90 s, from a GPU's first work to its last (63.2 %).\n"
            " idle %      count     time     mean      max  why\n"
            "   58.3         10   700 ms  70.0 ms   140 ms  the program launched nothing for "
            "it: in train (app.py:14 to 11)\n"
            "   25.0        100   300 ms  3.00 ms  6.00 ms  after the program had waited for "
            "it: in item (app.py:3)\n"
            "   15.8     10,000   190 ms  19.0 us  38.0 us  it was done before the next launch "
            "came: by step (app.py:5)\n"
            "    0.8  in 1 other\n"
            "Threads waited for the GPU for 610 ms in 110 calls: 100 % in item (app.py:3).\n");
}

TEST_F(GpuIdleTextTest, IsCutToTheTerminalAndCannotMoveItsCursor) {
  Tables& tables = recording_.mutable_tables();
  std::string name(90, 'x');
  name += "\x1b[2J";
  record_.idles[0].from = record_.idles[0].to = testing::MakeStack(tables, {{name, 1}});
  const std::string text = Text(80);
  EXPECT_THAT(text, AllOf(HasSubstr("x\\x1b[2J"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(Text(200), HasSubstr("for it: from one launch to the next by\n"));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    EXPECT_LE(DisplayWidth(line), 80) << line;
    begin = end + 1;
  }
}

TEST_F(GpuIdleTextTest, ARecordingThatDoesNotTellItHasNone) {
  record_.uses.clear();
  record_.idles.clear();
  record_.waits.clear();
  EXPECT_EQ(Text(), "");
}

TEST_F(GpuIdleTextTest, AFileThatCountsNothingIsShown) {
  record_.idles[0].count = 0;
  EXPECT_THAT(Text(), HasSubstr("58.3          0   700 ms      0 s"));
}

TEST_F(GpuIdleTextTest, AGpuThatIsAlwaysBusyHasNoRows) {
  record_.uses[0].idle_ns = 0;
  record_.idles.clear();
  record_.waits.clear();
  EXPECT_EQ(Text(),
            "Nothing to do for 0 s of 700 ms, from a GPU's first work to its last (0.0 %).\n");
}

}  // namespace
}  // namespace pystrobe::print
