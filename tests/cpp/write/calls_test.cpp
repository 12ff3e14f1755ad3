// SPDX-License-Identifier: Apache-2.0
//
// The formats of calls. What their own readers make of them is tested end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::HasSubstr;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using testing::Written;

MemoryRecording Calls() {
  MemoryRecording recording;
  recording.mutable_metadata().pause_mode = kByTracing;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex thread = MakeThread(tables, 1, "MainThread");
  recording.Add({.time_ns = 10,
                 .wall_ns = 10,
                 .cpu_ns = 4,
                 .thread = thread,
                 .stack = MakeStack(tables, {{"main", 3, "a.py", 3}}),
                 .count = 1});
  recording.Add({.time_ns = 3'000'000'010,
                 .wall_ns = 3'000'000'000,
                 .cpu_ns = 5,
                 .thread = thread,
                 .stack = MakeStack(tables, {{"main", 3, "a.py", 3}, {"<lambda>", 7, "b\n.py", 7}}),
                 .count = 3'000'000'000});
  recording.Add({.time_ns = 3'000'000'012,
                 .wall_ns = 2,
                 .cpu_ns = 2,
                 .thread = thread,
                 .stack = MakeStack(tables, {{"main", 3, "a.py", 3}, {"<lambda>", 9, "b\n.py", 9}}),
                 .count = 1});
  return recording;
}

TEST(CallgrindTest, TellsEachFunctionAndItsCalls) {
  const std::string text = Written(WriteCallgrind, Calls());
  EXPECT_THAT(text, HasSubstr("# callgrind format\nversion: 1\n"));
  EXPECT_THAT(text, HasSubstr("events: Wall CPU\nsummary: 3000000012 11\n"));
  EXPECT_THAT(text, HasSubstr("\nfl=(1) a.py\nfn=(1) main\n3 10 4\n"
                              "cfi=(2) b .py\ncfn=(2) <lambda>:7\ncalls=3000000000 7\n"
                              "3 3000000000 5\n"
                              "cfi=(2)\ncfn=(3) <lambda>:9\ncalls=1 9\n3 2 2\n"));
  EXPECT_THAT(text, HasSubstr("\nfl=(2)\nfn=(2)\n7 3000000000 5\n"));
}

TEST(PstatsTest, IsWhatMarshalReads) {
  const std::string bytes = Written(WritePstats, Calls());
  using namespace std::string_literals;
  EXPECT_TRUE(
      bytes.starts_with("{(\x03\0\0\0u\x04\0\0\0a.pyi\x03\0\0\0u\x04\0\0\0main"
                        "(\x05\0\0\0i\x01\0\0\0i\x01\0\0\0g"s));
  // 3,000,000,000 as digits of 15 bits: 0x5E00, 0x65A0, 2.
  EXPECT_THAT(bytes, HasSubstr("l\x03\0\0\0\0\x5E\xA0\x65\x02\0"s));
  EXPECT_TRUE(bytes.ends_with("00"));
}

TEST(CallsTest, SamplesAreRefused) {
  MemoryRecording samples = Calls();
  samples.mutable_metadata().pause_mode = "preempt";
  const auto profile = Fold(samples, {});
  testing::StringOutput output;
  for (const Format format : {Format::kCallgrind, Format::kPstats}) {
    const auto written = Write(format, *profile, {}, output);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(written.error().message, HasSubstr("samples do not tell"));
  }
}

}  // namespace
}  // namespace pystrobe::write
