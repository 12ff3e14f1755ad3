// SPDX-License-Identifier: Apache-2.0
#include "profiler/print/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/print/table.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/units.h"

namespace pystrobe::print {
namespace {

using testing::FrameSpec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMs;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Not;

constexpr FrameSpec kModule{"<module>", 20, "/app/load.py", 1};
constexpr FrameSpec kLine7{"load", 7, "/app/load.py", 5}, kLine9{"load", 9, "/app/load.py", 5};
constexpr FrameSpec kInflate{"inflate", 0, "/lib/libz.so.1", 0, true};

class SplitTest : public ::testing::Test {
 protected:
  SplitTest() {
    recording_.mutable_metadata().native = true;
    recording_.mutable_quality().samples = 1;
    thread_ = MakeThread(recording_.mutable_tables(), 1, "MainThread");
    Add(10, {kModule});
    Add(10, {kModule, kLine9});
    Add(10, {kModule, kLine9}, kSampleKernel);
    Add(50, {kModule, kLine7, kInflate});
    Add(20, {kModule, kLine7, kInflate}, kSampleKernel);
  }

  void Add(uint64_t ms, std::initializer_list<FrameSpec> frames, uint8_t flags = 0) {
    recording_.Add({.time_ns = 1,
                    .cpu_ns = ms * kMs,
                    .thread = thread_,
                    .stack = MakeStack(recording_.mutable_tables(), frames),
                    .flags = static_cast<uint8_t>(flags | kSampleOnCpu)});
  }

  std::string Split(TableOptions options = {.mode = Mode::kCpu}) {
    return FormatSplit(Fold(recording_, {}).value(), options);
  }

  MemoryRecording recording_;
  ThreadIndex thread_{};
};

TEST_F(SplitTest, IsByLineTheMostTimeFirst) {
  EXPECT_EQ(Split(),
            "What used the CPU: Python 20.0 %, native code 50.0 %, the kernel 30.0 %; by\n"
            "  line, with the C functions it calls:\n"
            "   cpu %  python  native  kernel  function  file:line\n"
            "    70.0     0.0    50.0    20.0  load      /app/load.py:7\n"
            "    20.0    10.0     0.0    10.0  load      /app/load.py:9\n"
            "    10.0    10.0     0.0     0.0  <module>  /app/load.py:20\n");
}

TEST_F(SplitTest, HasAsManyLinesAsAreAskedFor) {
  const std::string text = Split({.mode = Mode::kCpu, .top = 1});
  EXPECT_THAT(text, HasSubstr("load.py:7"));
  EXPECT_THAT(text, Not(HasSubstr("load.py:9")));
}

TEST_F(SplitTest, LeavesOutWhatSaysLittle) {
  Add(9900, {kModule});
  const std::string text = Split();
  EXPECT_THAT(text, HasSubstr("load.py:20"));
  EXPECT_THAT(text, Not(HasSubstr("load.py:9")));
}

TEST_F(SplitTest, IsNotThereWithoutCFunctions) {
  recording_.mutable_metadata().native = false;
  EXPECT_THAT(Split(), IsEmpty());
}

TEST_F(SplitTest, FollowsTheTable) {
  const std::string text = FormatTable(Fold(recording_, {}).value(), {.mode = Mode::kCpu});
  EXPECT_THAT(text, HasSubstr("\n\nWhat used the CPU: "));
}

}  // namespace
}  // namespace pystrobe::print
