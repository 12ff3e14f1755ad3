// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using testing::Written;
using testing::WrittenExample;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  return lines;
}

uint64_t Sum(const std::string& text) {
  uint64_t sum = 0;
  for (const std::string& line : Lines(text)) sum += std::stoull(line.substr(line.rfind(' ')));
  return sum;
}

TEST(CollapsedTest, WritesThreadsAsRootsAndExecutingLines) {
  EXPECT_THAT(Lines(WrittenExample(WriteCollapsed, "shop")),
              UnorderedElementsAre(
                  "MainThread [4242];<module> (/app/shop.py:40);main (/app/shop.py:31) 100",
                  "MainThread [4242];<module> (/app/shop.py:40);main (/app/shop.py:33);"
                  "Json.encode (/app/json.py:12) 400",
                  "MainThread [4242];<module> (/app/shop.py:40);main (/app/shop.py:33);"
                  "Json.encode (/app/json.py:14) 200",
                  "MainThread [4242];<module> (/app/shop.py:40);main (/app/shop.py:33);"
                  "read (/app/socket.py:7) 300",
                  "worker [4243];Thread.run (/lib/threading.py:99);crunch (/app/w.py:3) 500",
                  "thread [4250];Thread.run (/lib/threading.py:99) 1000"));
}

TEST(CollapsedTest, OneThreadNeedsNoRoot) {
  EXPECT_THAT(Lines(WrittenExample(WriteCollapsed, "shop", {}, {.thread = "worker"})),
              ElementsAre("Thread.run (/lib/threading.py:99);crunch (/app/w.py:3) 500"));
}

TEST(CollapsedTest, TheModeDecidesAndStacksWithoutTimeInItAreLeftOut) {
  const WriteOptions cpu{.mode = Mode::kCpu, .unit = Unit::kNanoseconds};
  const auto lines = Lines(WrittenExample(WriteCollapsed, "shop", cpu));
  EXPECT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines, ::testing::Contains(
                         "worker [4243];Thread.run (/lib/threading.py:99);crunch (/app/w.py:3) "
                         "125000000"));
  const WriteOptions gil{.mode = Mode::kGil, .unit = Unit::kSamples};
  EXPECT_EQ(Sum(WrittenExample(WriteCollapsed, "shop", gil)), 700U);
}

TEST(CollapsedTest, MicrosecondsKeepTheSum) {
  MemoryRecording recording;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex thread = MakeThread(tables, 1, "main");
  for (uint32_t line = 1; line <= 100; ++line) {
    recording.Add({.time_ns = line,
                   .wall_ns = 1'500,
                   .thread = thread,
                   .stack = MakeStack(tables, {{"f", line}})});
  }
  EXPECT_EQ(Sum(Written(WriteCollapsed, recording, {.unit = Unit::kMicroseconds})), 150U);
  EXPECT_EQ(Sum(Written(WriteCollapsed, recording, {.unit = Unit::kNanoseconds})), 150'000U);
}

TEST(CollapsedTest, OddNamesSplitNoFrameAndNoLine) {
  const auto lines = Lines(WrittenExample(WriteCollapsed, "odd"));
  EXPECT_THAT(lines, SizeIs(2 * testing::OddNames().size() + 1));
  for (const std::string& line : lines) {
    EXPECT_EQ(line.substr(line.rfind(' ') + 1), "1") << line;
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
    const auto separators = std::ranges::count(line, ';');
    if (line.starts_with("Main")) {
      EXPECT_EQ(separators, line.find("no Python") == std::string::npos ? 2 : 1) << line;
    } else {
      EXPECT_EQ(separators, 1) << line;
    }
  }
  EXPECT_THAT(lines, ::testing::Contains("Main: \"Thread\" \xF0\x9F\x8E\x89 [1];root (app.py:1);"
                                         "semi:colon (semi:colon:2) 1"));
  EXPECT_THAT(lines,
              ::testing::Contains("Main: \"Thread\" \xF0\x9F\x8E\x89 [1];[no Python frames] 1"));
}

TEST(CollapsedTest, TellsWhyThereIsNoStack) {
  MemoryRecording recording;
  const ThreadIndex thread = MakeThread(recording.mutable_tables(), 1, "main");
  recording.Add({.time_ns = 1, .wall_ns = 1, .thread = thread, .stack = kEmptyStack});
  recording.Add({.time_ns = 4,
                 .wall_ns = 3,
                 .thread = thread,
                 .stack = kEmptyStack,
                 .count = 2,
                 .flags = kSampleUnseen});
  EXPECT_EQ(Written(WriteCollapsed, recording), "[no Python frames] 1\n[not looked at] 2\n");
  EXPECT_EQ(Written(WriteCollapsed, recording, {.unit = Unit::kNanoseconds}),
            "[no Python frames] 1\n[not looked at] 3\n");
  const FoldOptions cut{.since_ns = 2};
  EXPECT_EQ(Written(WriteCollapsed, recording, {.unit = Unit::kNanoseconds}, cut),
            "[not looked at] 2\n");
  EXPECT_EQ(Written(WriteCollapsed, recording, {.mode = Mode::kCpu}), "");
}

// What one of them leaves below a microsecond is the other's.
TEST(CollapsedTest, MicrosecondsWithoutAStackKeepTheSum) {
  MemoryRecording recording;
  const ThreadIndex thread = MakeThread(recording.mutable_tables(), 1, "main");
  recording.Add({.time_ns = 1'500, .wall_ns = 1'500, .thread = thread});
  recording.Add({.time_ns = 3'000, .wall_ns = 1'500, .thread = thread, .flags = kSampleUnseen});
  EXPECT_EQ(Written(WriteCollapsed, recording, {.unit = Unit::kMicroseconds}),
            "[no Python frames] 1\n[not looked at] 2\n");
}

TEST(CollapsedTest, GapsAreNotLookedAt) {
  const WriteOptions wall{.unit = Unit::kNanoseconds};
  EXPECT_THAT(Lines(WrittenExample(WriteCollapsed, "gaps", wall)),
              UnorderedElementsAre("MainThread [4242];serve (/app/serve.py:5) 60000000",
                                   "MainThread [4242];[no Python frames] 20000000",
                                   "MainThread [4242];[not looked at] 20000000"));
  const WriteOptions cpu{.mode = Mode::kCpu, .unit = Unit::kNanoseconds};
  EXPECT_THAT(Lines(WrittenExample(WriteCollapsed, "gaps", cpu)),
              ::testing::Contains("threads not sampled;[not looked at] 120000000"));
}

TEST(CollapsedTest, NothingRecordedIsAnEmptyFile) {
  EXPECT_THAT(WrittenExample(WriteCollapsed, "empty"), IsEmpty());
  EXPECT_THAT(WrittenExample(WriteCollapsed, "idle"), IsEmpty());
}

TEST(CollapsedTest, DeepAndWide) {
  const auto deep = Lines(WrittenExample(WriteCollapsed, "deep"));
  ASSERT_THAT(deep, SizeIs(1));
  EXPECT_EQ(std::ranges::count(deep[0], ';'), 999);
  EXPECT_TRUE(deep[0].ends_with("level_999 (deep.py:5) 50"));
  EXPECT_THAT(Lines(WrittenExample(WriteCollapsed, "wide")), SizeIs(100'000));
}

/// Of one sample of one function.
std::string WrittenOf(std::string_view function, std::string_view file) {
  MemoryRecording recording;
  Tables& tables = recording.mutable_tables();
  recording.Add({.time_ns = 1,
                 .wall_ns = 1,
                 .thread = MakeThread(tables, 1, "MainThread"),
                 .stack = MakeStack(tables, {{function, 1, file}})});
  return Written(WriteCollapsed, recording);
}

// A terminal would take U+009B for the begin of a command.
TEST(CollapsedTest, ControlCharactersBeyondAsciiAreSpaces) {
  EXPECT_EQ(WrittenOf("a\u009B2J\u0080\u009F\u00A0z", "b"), "a 2J  \u00A0z (b:1) 1\n");
}

// One after the other taken out of the middle of such a name would take hours.
TEST(CollapsedTest, ANameMayBeManyLines) {
  std::string name;
  for (int i = 0; i < 4'000'000; ++i) name += "\xC2\x85";
  EXPECT_EQ(WrittenOf(name, "a;b"), std::string(4'000'000, ' ') + " (a:b:1) 1\n");
}

}  // namespace
}  // namespace pystrobe::write
