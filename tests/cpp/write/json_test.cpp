// SPDX-License-Identifier: Apache-2.0
//
// The text itself, since programs depend on it; that it fits its schema is tested with a JSON
// reader in tests/python/test_formats.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::HasSubstr;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Not;
using testing::Written;
using testing::WrittenExample;

TEST(JsonTest, WritesAStackWithAllItsWeights) {
  MemoryRecording recording;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex thread = MakeThread(tables, 42, "main");
  const StackId stack = MakeStack(tables, {{"outer", 3, "a.py", 1}, {"inner", 8, "b.py", 7}});
  recording.Add({.time_ns = 2'000,
                 .wall_ns = 2'000,
                 .cpu_ns = 700,
                 .thread = thread,
                 .stack = stack,
                 .count = 2,
                 .flags = kSampleGil | kSampleOnCpu});
  recording.Add({.time_ns = 3'000, .wall_ns = 1'000, .thread = thread, .stack = stack});
  const std::string text = Written(WriteJson, recording, {.title = "T"});
  const std::string weights = R"("samples":3,"cpu_samples":2,"gil_samples":2,"wall_ns":3000,)"
                              R"("cpu_ns":700,"gil_ns":2000})";
  const std::string none =
      R"("samples":0,"cpu_samples":0,"gil_samples":0,"wall_ns":0,"cpu_ns":0,"gil_ns":0})";
  EXPECT_THAT(text, HasSubstr(R"("format":"pystrobe-profile","version":1,)"
                              "\n"
                              R"("title":"T",)"
                              "\n"
                              R"("mode":"wall",)"));
  EXPECT_THAT(text, HasSubstr(R"("range":{"since_ns":0,"until_ns":3000},)"
                              "\n"
                              R"("total":{)" +
                              weights + ",\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"("functions":[)"
          "\n"
          R"({"name":"inner","file":"b.py","line":7,"native":false,"hottest_line":8,"self":{)" +
          weights + R"(,"total":{)" + weights +
          "},\n"
          R"({"name":"outer","file":"a.py","line":1,"native":false,"hottest_line":3,"self":{)" +
          none + R"(,"total":{)" + weights + "}],\n"));
  EXPECT_THAT(text, HasSubstr(R"("threads":[)"
                              "\n"
                              R"({"name":"main","tid":42,"interpreter":0,"total":{)" +
                              weights +
                              R"(,"stacks":[)"
                              "\n"
                              R"({"frames":[[1,3],[0,8]],)" +
                              weights + "]}]\n}\n"));
}

TEST(JsonTest, TellsForHowLongThreadsWereHeldWhereThatIsKnown) {
  MemoryRecording recording;
  EXPECT_THAT(Written(WriteJson, recording), Not(HasSubstr("held_count")));
  // 15 ns and less are told as they are.
  for (const uint64_t ns : {11, 3, 3, 3, 5, 4, 4, 12})
    recording.mutable_quality().held_each.Add(ns);
  EXPECT_THAT(Written(WriteJson, recording),
              HasSubstr(R"("held_count":8,"held_median_ns":4,"held_p99_ns":12)"));
}

TEST(JsonTest, TheHottestFunctionOfTheModeComesFirst) {
  const std::string wall = WrittenExample(WriteJson, "shop", {.mode = Mode::kWall});
  EXPECT_THAT(wall, HasSubstr("\"functions\":[\n{\"name\":\"Thread.run\""));
  const std::string cpu = WrittenExample(WriteJson, "shop", {.mode = Mode::kCpu});
  EXPECT_THAT(cpu, HasSubstr("\"functions\":[\n{\"name\":\"Json.encode\""));
}

TEST(JsonTest, AnEmptyRecordingHasEmptyTables) {
  const std::string text = WrittenExample(WriteJson, "empty");
  EXPECT_THAT(text, HasSubstr("\"functions\":[],\n\"threads\":[]\n}\n"));
}

}  // namespace
}  // namespace pystrobe::write
