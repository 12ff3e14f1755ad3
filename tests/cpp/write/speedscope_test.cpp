// SPDX-License-Identifier: Apache-2.0
//
// The text itself; that it fits speedscope's schema and that its page draws it is tested in
// tests/python/test_formats.py.
#include "profiler/write/speedscope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/units.h"
#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using testing::FillExample;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Not;
using testing::Written;
using testing::WrittenExample;

/// From "profiles" to the end.
std::string Profiles(const std::string& text) {
  const size_t start = text.find("\"profiles\":");
  return start == std::string::npos ? std::string() : text.substr(start);
}

class SpeedscopeTest : public ::testing::Test {
 protected:
  SpeedscopeTest() {
    Tables& tables = recording_.mutable_tables();
    first_ = MakeThread(tables, 1, "first");
    second_ = MakeThread(tables, 2, "second");
    outer_ = MakeStack(tables, {{"outer", 2, "a.py", 1}});
    inner_ = MakeStack(tables, {{"outer", 2, "a.py", 1}, {"inner", 6, "a.py", 5}});
    inner_next_line_ = MakeStack(tables, {{"outer", 2, "a.py", 1}, {"inner", 7, "a.py", 5}});
  }

  void Add(ThreadIndex thread, int64_t end_ms, StackId stack, uint8_t flags = 0) {
    recording_.Add({.time_ns = end_ms * kMs,
                    .wall_ns = kMs,
                    .cpu_ns = kMs / 2,
                    .thread = thread,
                    .stack = stack,
                    .flags = flags});
  }

  MemoryRecording recording_;
  ThreadIndex first_, second_;
  StackId outer_, inner_, inner_next_line_;
};

TEST_F(SpeedscopeTest, EachThreadInOrderOfTimeWithRunsMerged) {
  Add(first_, 1, outer_);
  Add(second_, 6, inner_);
  Add(first_, 2, inner_);
  Add(first_, 3, inner_next_line_);  // the same functions: no new run
  Add(second_, 7, inner_);
  Add(first_, 4, outer_);
  EXPECT_EQ(Profiles(Written(WriteSpeedscope, recording_)),
            "\"profiles\":[\n"
            R"({"type":"sampled","name":"first [1]","unit":"nanoseconds","startValue":0,)"
            R"("endValue":4000000,)"
            "\n"
            R"("samples":[[0],[0,1],[0]],)"
            "\n"
            R"("weights":[1000000,2000000,1000000]},)"
            "\n"
            R"({"type":"sampled","name":"second [2]","unit":"nanoseconds","startValue":5000000,)"
            R"("endValue":7000000,)"
            "\n"
            R"("samples":[[0,1]],)"
            "\n"
            R"("weights":[2000000]}]})"
            "\n");
}

TEST_F(SpeedscopeTest, FramesAreFunctionsAtTheirDefinition) {
  Add(first_, 1, inner_);
  EXPECT_THAT(Written(WriteSpeedscope, recording_),
              HasSubstr("\"shared\":{\"frames\":[\n"
                        R"({"name":"outer","file":"a.py","line":1},)"
                        "\n"
                        R"({"name":"inner","file":"a.py","line":5}]})"));
}

TEST_F(SpeedscopeTest, TheModeChoosesTheWeights) {
  Add(first_, 1, outer_, kSampleGil);
  Add(first_, 2, inner_);
  EXPECT_THAT(Written(WriteSpeedscope, recording_, {.mode = Mode::kCpu}),
              HasSubstr("\"weights\":[500000,500000]"));
  const std::string gil = Profiles(Written(WriteSpeedscope, recording_, {.mode = Mode::kGil}));
  EXPECT_THAT(gil, HasSubstr(R"("startValue":0,"endValue":1000000,)"));
  EXPECT_THAT(gil, HasSubstr("\"samples\":[[0]],\n\"weights\":[1000000]"));
}

TEST_F(SpeedscopeTest, OnlyTheRangeAndTheThreadsOfTheProfile) {
  for (int64_t ms = 1; ms <= 10; ++ms) {
    Add(first_, ms, outer_);
    Add(second_, ms, inner_);
  }
  const std::string text =
      Profiles(Written(WriteSpeedscope, recording_, {},
                       {.thread = "second", .since_ns = 2 * kMs, .until_ns = 5 * kMs}));
  EXPECT_THAT(text, Not(HasSubstr("first")));
  EXPECT_THAT(text, HasSubstr(R"("startValue":2000000,"endValue":5000000,)"));
}

TEST_F(SpeedscopeTest, AThreadWithoutTimeInTheModeIsLeftOut) {
  Add(first_, 1, outer_, kSampleGil);
  Add(second_, 1, inner_);
  EXPECT_THAT(Profiles(Written(WriteSpeedscope, recording_, {.mode = Mode::kGil})),
              Not(HasSubstr("second [2]")));
}

TEST(SpeedscopeWriterTest, MemoryLimitsDoNotChangeTheBytes) {
  for (const char* example : {"shop", "odd", "large", "ranges-and-calls"}) {
    MemoryRecording recording;
    ASSERT_TRUE(FillExample(example, recording));
    const auto profile = Fold(recording, {.include_idle = true});
    ASSERT_TRUE(profile);
    const std::string whole = Written(WriteSpeedscope, recording);
    for (const uint64_t runs : {0, 1, 3, 20, 9'000}) {
      testing::StringOutput output;
      ASSERT_TRUE(WriteSpeedscopeWithin(runs, *profile, {}, output));
      EXPECT_TRUE(output.text == whole) << example << " within " << runs;
    }
  }
}

TEST(SpeedscopeWriterTest, NothingRecordedIsAnEmptyProfile) {
  for (const char* example : {"empty", "idle"}) {
    EXPECT_THAT(Profiles(WrittenExample(WriteSpeedscope, example)),
                HasSubstr(R"("startValue":0,"endValue":0,"samples":[],"weights":[]})"))
        << example;
  }
}

TEST(SpeedscopeWriterTest, TheHeadSaysWhatItIs) {
  const std::string text = WrittenExample(WriteSpeedscope, "shop", {.title = "my \"title\""});
  EXPECT_THAT(text, HasSubstr(R"("exporter":"pystrobe@0.1.0")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"my \"title\"")"));
  EXPECT_THAT(text, HasSubstr("proved exact"));
}

}  // namespace
}  // namespace pystrobe::write
