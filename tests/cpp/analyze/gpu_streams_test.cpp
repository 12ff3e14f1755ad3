// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/units.h"

namespace pystrobe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kMs;
using testing::MakeGpuExample;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

/// A millisecond of a thread, and what a GPU did.
class StreamsTest : public ::testing::Test {
 protected:
  StreamsTest() {
    Tables& tables = recording_.mutable_tables();
    const ThreadIndex main = MakeThread(tables, 100, "MainThread");
    recording_.Add({.time_ns = kMs,
                    .wall_ns = kMs,
                    .thread = main,
                    .stack = MakeStack(tables, {{"<module>", 30}, {"train", 12}})});
    record_ = MakeGpuExample(tables);
    recording_.SetGpu(record_);
  }

  Profile MustFold(const FoldOptions& options) {
    Result<Profile> profile = Fold(recording_, options);
    EXPECT_TRUE(profile.has_value()) << (profile ? "" : profile.error().message);
    return profile.value_or(Profile{});
  }

  std::vector<std::string> Names(const Profile& profile) {
    std::vector<std::string> names;
    for (const ThreadProfile& thread : profile.threads) {
      names.push_back(profile.tables().text(profile.tables().thread(thread.thread).name));
    }
    return names;
  }

  /// The stack as text, root first.
  static std::string StackText(const Profile& profile, StackId stack) {
    std::string text;
    const Tables& tables = profile.tables();
    for (const FrameId frame : tables.FramesOf(stack)) {
      const Function& function = tables.function(tables.frame(frame).function);
      if (!text.empty()) text += ";";
      text += tables.text(function.name);
    }
    return text;
  }

  MemoryRecording recording_;
  GpuRecord record_;
};

TEST_F(StreamsTest, StandInThePlaceOfThreads) {
  const Profile profile = MustFold({.work = Work::kGpu});
  EXPECT_THAT(Names(profile), ElementsAre("GPU 0 stream 7", "GPU 0 stream 13"));
  EXPECT_EQ(profile.CountThreads(), 0U) << "none is a thread";
  uint64_t total = 0;
  for (const GpuSum& sum : record_.sums) total += sum.total_ns;
  EXPECT_EQ(profile.total.gpu_ns, total);
  EXPECT_EQ(profile.total.nanoseconds(Mode::kGpu), total);
  EXPECT_EQ(profile.total.gpu_count, 1000U + 100 + 1000 + 10 + 3 + 1) << "those untimed too";
  EXPECT_EQ(profile.total.count(Mode::kGpu), profile.total.gpu_count);
  EXPECT_EQ(profile.total.wall_ns, 0U);
  EXPECT_EQ(profile.until_ns, record_.quality.duration_ns);
}

TEST_F(StreamsTest, HaveTheKernelOnTheStackThatLaunchedIt) {
  const Profile profile = MustFold({.work = Work::kGpu});
  std::vector<std::string> stacks;
  for (const StackWeight& entry : profile.threads[0].stacks) {
    stacks.push_back(StackText(profile, entry.stack));
  }
  EXPECT_THAT(stacks, ElementsAre("<module>;train;step;gemm<float, 128>",
                                  "<module>;train;step;relu", "set"));
  const StackWeight& gemm = profile.threads[0].stacks[0];
  EXPECT_EQ(gemm.self.gpu_ns, record_.sums[0].total_ns + record_.sums[1].total_ns)
      << "shapes are one function";
  const Tables& tables = profile.tables();
  const Function& function = tables.function(tables.frame(tables.stack(gemm.stack).frame).function);
  EXPECT_TRUE(function.is_native);
  EXPECT_EQ(tables.text(function.file), kGpuFile);
  EXPECT_EQ(tables.stack(gemm.stack).parent, record_.sums[0].stack) << "ids are the recording's";
}

TEST_F(StreamsTest, AreInNoOtherMode) {
  const Profile profile = MustFold({});
  EXPECT_THAT(Names(profile), ElementsAre("MainThread"));
  EXPECT_EQ(profile.total.gpu_ns, 0U);
  EXPECT_EQ(&profile.tables(), &recording_.tables());
  for (const FunctionRow& row : FunctionTable(profile, Mode::kWall)) {
    EXPECT_NE(profile.tables().text(profile.tables().function(row.function).file), kGpuFile);
  }
}

TEST_F(StreamsTest, StandBehindThreadsWhereBothAreWanted) {
  const Profile profile = MustFold({.work = Work::kBoth});
  EXPECT_THAT(Names(profile), ElementsAre("MainThread", "GPU 0 stream 7", "GPU 0 stream 13"));
  EXPECT_EQ(profile.total.wall_ns, uint64_t{kMs});
  EXPECT_GT(profile.total.gpu_ns, 0U);
  EXPECT_THAT(Names(MustFold({.until_ns = kMs, .work = Work::kBoth})), ElementsAre("MainThread"))
      << "when a GPU's work ran is not kept";
}

TEST_F(StreamsTest, AreNeverIdle) {
  recording_.mutable_quality().duration_ns = 1'000'000 * kMs;
  EXPECT_EQ(MustFold({.work = Work::kGpu}).threads.size(), 2U);
  EXPECT_EQ(MustFold({.include_idle = true, .work = Work::kBoth}).threads.size(), 3U);
}

TEST_F(StreamsTest, AreFilteredByName) {
  EXPECT_THAT(Names(MustFold({.thread = "stream 13", .work = Work::kGpu})),
              ElementsAre("GPU 0 stream 13"));
  const auto none = Fold(recording_, {.thread = "MainThread", .work = Work::kGpu});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("GPU 0 stream 13; GPU 0 stream 7"));
}

TEST_F(StreamsTest, OfAPartAreRefused) {
  for (const FoldOptions& options :
       {FoldOptions{.since_ns = 5, .work = Work::kGpu}, {.until_ns = 5, .work = Work::kGpu}}) {
    const auto refused = Fold(recording_, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("when it ran is not kept"));
  }
}

TEST(StreamsOfNone, AreRefused) {
  const MemoryRecording without;
  const auto refused = Fold(without, {.work = Work::kGpu});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("does not tell what a GPU did"));
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_TRUE(Fold(without, {.work = Work::kBoth}));
}

TEST_F(StreamsTest, HaveAMode) {
  EXPECT_EQ(ChooseMode(recording_, {}).value(), Mode::kWall);
  EXPECT_EQ(ChooseMode(recording_, Mode::kGpu).value(), Mode::kGpu);
  EXPECT_FALSE(ChooseMode(recording_, Mode::kGpu, true)) << "of a part";
  EXPECT_FALSE(ChooseMode(MemoryRecording(), Mode::kGpu)) << "without a record";
  for (const std::string_view how : {kBySignals, kByTracing}) {
    recording_.mutable_metadata().pause_mode = how;
    EXPECT_NE(ChooseMode(recording_, {}).value(), Mode::kGpu);
    EXPECT_EQ(ChooseMode(recording_, Mode::kGpu).value(), Mode::kGpu);
  }
}

TEST_F(StreamsTest, AloneAreTheMode) {
  recording_.mutable_metadata().pause_mode = kOfGpu;
  EXPECT_EQ(ChooseMode(recording_, {}).value(), Mode::kGpu);
  EXPECT_FALSE(ChooseMode(recording_, {}, true));
  const auto wall = ChooseMode(recording_, Mode::kWall);
  ASSERT_FALSE(wall);
  EXPECT_THAT(wall.error().message, HasSubstr("has no wall time"));
}

}  // namespace
}  // namespace pystrobe
