// SPDX-License-Identifier: Apache-2.0
//
// What holds for every writer: what it does when the bytes cannot be written.
#include <gtest/gtest.h>

#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using testing::FillExample;
using testing::FullOutput;
using testing::MemoryRecording;
using testing::WriteFunction;
using testing::Written;

struct Writer {
  const char* name;
  WriteFunction write;
};

class OutputTest : public ::testing::TestWithParam<Writer> {};

// Whether the disk is full at the first byte, in the middle or at the last one.
TEST_P(OutputTest, TheFirstFailureIsReportedAndNothingTriedAfterIt) {
  for (const char* example : {"shop", "empty", "large", "gpu-timeline"}) {
    MemoryRecording recording;
    ASSERT_TRUE(FillExample(example, recording));
    const size_t size = Written(GetParam().write, recording).size();
    const auto profile = Fold(recording, {.include_idle = true});
    ASSERT_TRUE(profile);
    for (const size_t missing : {size, size / 2 + 1, size_t{1}}) {
      if (missing > size) continue;  // nothing to write
      FullOutput output(size - missing);
      const auto written = GetParam().write(*profile, {}, output);
      if (size == 0) {
        EXPECT_TRUE(written);
        continue;
      }
      ASSERT_FALSE(written) << example << " without " << missing << " of " << size;
      EXPECT_EQ(written.error().message, "no space left");
      EXPECT_EQ(output.writes_after_failure, 0) << example;
    }
  }
}

TEST_P(OutputTest, TheSameProfileGivesTheSameBytes) {
  MemoryRecording recording;
  ASSERT_TRUE(FillExample("odd", recording));
  EXPECT_EQ(Written(GetParam().write, recording), Written(GetParam().write, recording));
}

/// A recording whose samples cannot be read a second time.
class UnreadableRecording final : public RecordingSource {
 public:
  explicit UnreadableRecording(const MemoryRecording& recording) : recording_(recording) {}
  const Metadata& metadata() const override { return recording_.metadata(); }
  const Tables& tables() const override { return recording_.tables(); }
  const Quality& quality() const override { return recording_.quality(); }
  Result<void> ForEachSample(FunctionRef<void(const Sample&)>) const override {
    return Fail(ErrorCode::kUnreadable, "the file is gone");
  }
  Result<void> ForEachCall(CallVisitor) const override {
    return Fail(ErrorCode::kUnreadable, "the file is gone");
  }

 private:
  const MemoryRecording& recording_;
};

TEST(SpeedscopeOutputTest, ARecordingThatCannotBeReadIsReported) {
  MemoryRecording recording;
  ASSERT_TRUE(FillExample("shop", recording));
  auto profile = Fold(recording, {});
  ASSERT_TRUE(profile);
  const UnreadableRecording unreadable(recording);
  profile->recording = &unreadable;
  testing::StringOutput output;
  const auto written = WriteSpeedscope(*profile, {}, output);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kUnreadable);
}

INSTANTIATE_TEST_SUITE_P(Writers, OutputTest,
                         ::testing::Values(Writer{"Collapsed", WriteCollapsed},
                                           Writer{"Callgrind", WriteCallgrind},
                                           Writer{"Pstats", WritePstats}, Writer{"Html", WriteHtml},
                                           Writer{"Json", WriteJson}, Writer{"Pprof", WritePprof},
                                           Writer{"Speedscope", WriteSpeedscope},
                                           Writer{"TraceEvents", WriteTraceEvents},
                                           Writer{"Perfetto", WritePerfetto}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pystrobe::write
