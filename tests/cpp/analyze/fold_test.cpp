// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "profiler/analyze/profile.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/units.h"

namespace pystrobe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMs;
using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;

/// A busy main thread and a waiting worker, 1 ms samples.
class FoldTest : public ::testing::Test {
 protected:
  FoldTest() {
    Tables& tables = recording_.mutable_tables();
    main_ = MakeThread(tables, 100, "MainThread");
    worker_ = MakeThread(tables, 101, "worker-1");
    run_ = MakeStack(tables, {{"main", 1}, {"run", 5}});
    wait_ = MakeStack(tables, {{"loop", 3}, {"wait", 9}});
  }

  void Busy(int64_t time_ms, StackId stack) {
    recording_.Add({.time_ns = time_ms * kMs,
                    .wall_ns = kMs,
                    .cpu_ns = kMs - 1000,
                    .thread = main_,
                    .stack = stack,
                    .flags = kSampleGil | kSampleOnCpu});
  }

  void Idle(int64_t time_ms, uint32_t count) {
    recording_.Add({.time_ns = time_ms * kMs,
                    .wall_ns = uint64_t{kMs} * count,
                    .thread = worker_,
                    .stack = wait_,
                    .count = count,
                    .flags = kSampleIdle});
  }

  Profile MustFold(const FoldOptions& options = {}) {
    Result<Profile> profile = Fold(recording_, options);
    EXPECT_TRUE(profile.has_value()) << (profile ? "" : profile.error().message);
    return profile.value_or(Profile{});
  }

  MemoryRecording recording_;
  ThreadIndex main_{};
  ThreadIndex worker_{};
  StackId run_{};
  StackId wait_{};
};

TEST(ModeByName, KnowsTheNamesThatAreGiven) {
  for (const Mode mode : {Mode::kWall, Mode::kCpu, Mode::kGil, Mode::kGpu}) {
    EXPECT_EQ(ModeByName(ModeName(mode)), mode);
  }
  EXPECT_FALSE(ModeByName(""));
  EXPECT_FALSE(ModeByName("Wall"));
}

TEST_F(FoldTest, AddsEachWeightOfEachStack) {
  Busy(1, run_);
  Busy(2, kEmptyStack);
  Busy(3, run_);
  recording_.Add({.time_ns = 4'000'000, .wall_ns = 7, .cpu_ns = 3, .thread = main_, .stack = run_});
  const Profile profile = MustFold();
  ASSERT_EQ(profile.threads.size(), 1U);
  const ThreadProfile& thread = profile.threads[0];
  ASSERT_EQ(thread.stacks.size(), 2U);
  EXPECT_EQ(thread.stacks[0].stack, kEmptyStack);
  EXPECT_EQ(thread.stacks[1].stack, run_);
  const Weights expected{.samples = 3,
                         .cpu_samples = 2,
                         .gil_samples = 2,
                         .wall_ns = 2 * kMs + 7,
                         .cpu_ns = 2 * (kMs - 1000) + 3,
                         .gil_ns = 2 * kMs};
  EXPECT_EQ(thread.stacks[1].self, expected);
  EXPECT_EQ(thread.total.samples, 4U);
  EXPECT_EQ(profile.total, thread.total);
  EXPECT_EQ(profile.recording, &recording_);
}

TEST_F(FoldTest, ModesChooseTheirWeight) {
  const Weights weights{
      .samples = 1, .cpu_samples = 2, .gil_samples = 3, .wall_ns = 4, .cpu_ns = 5, .gil_ns = 6};
  EXPECT_EQ(weights.count(Mode::kWall), 1U);
  EXPECT_EQ(weights.count(Mode::kCpu), 2U);
  EXPECT_EQ(weights.count(Mode::kGil), 3U);
  EXPECT_EQ(weights.nanoseconds(Mode::kWall), 4U);
  EXPECT_EQ(weights.nanoseconds(Mode::kCpu), 5U);
  EXPECT_EQ(weights.nanoseconds(Mode::kGil), 6U);
  EXPECT_EQ(ModeName(Mode::kGil), "gil");
}

TEST_F(FoldTest, RunLengthEntriesCountAllTheirDeadlines) {
  Idle(500, 500);
  const Profile profile = MustFold();
  EXPECT_EQ(profile.total.samples, 500U);
  EXPECT_EQ(profile.total.cpu_samples, 0U);
  EXPECT_EQ(profile.total.wall_ns, 500 * kMs);
}

TEST_F(FoldTest, ARangeHasOfEachThreadWhatLiesInIt) {
  Idle(500, 500);
  Busy(101, run_);
  const auto part_of = [&](int64_t since_ms, int64_t until_ms) {
    return MustFold({.thread = {},
                     .since_ns = since_ms * kMs,
                     .until_ns = until_ms * kMs,
                     .include_idle = true})
        .total;
  };
  const Weights middle = part_of(200, 300);
  EXPECT_EQ(middle.wall_ns, 100 * kMs) << "the thread waited there, though its entry ends later";
  EXPECT_EQ(middle.samples, 100U);
  Weights sum = part_of(0, 33);
  for (const auto& [since, until] : {std::pair{33, 100}, {100, 101}, {101, 499}, {499, 500}}) {
    sum += part_of(since, until);
  }
  EXPECT_EQ(sum, part_of(0, 500));
}

// As a file made to mislead may have it.
TEST(PartOf, IsNeverMoreThanTheWhole) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  for (const uint64_t wall :
       {uint64_t{1}, kMost / 2, (uint64_t{1} << 63) + (uint64_t{1} << 61), kMost - 1, kMost}) {
    for (const int64_t time : {int64_t{0}, int64_t{1} << 61, int64_t{1} << 62, kLatest, -kLatest}) {
      const Sample sample{.time_ns = time, .wall_ns = wall, .cpu_ns = kMost, .count = 7};
      for (const int64_t until : {int64_t{1}, int64_t{1} << 61, kLatest}) {
        const auto part = PartOf(sample, until / 2, until);
        if (!part) continue;
        EXPECT_LE(part->wall_ns, wall);
        EXPECT_LE(part->count, 7U);
      }
    }
  }
}

TEST(PartOf, ADeadlineBelongsToTheInstantItEnds) {
  const Sample sample{.time_ns = 1000, .wall_ns = 400, .cpu_ns = 301, .count = 1};
  const auto before = PartOf(sample, 0, 900), after = PartOf(sample, 900, 2000);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->count, 0U);
  EXPECT_EQ(after->count, 1U);
  EXPECT_EQ(before->wall_ns, 300U);
  EXPECT_EQ(before->time_ns, 900);
  EXPECT_EQ(before->cpu_ns + after->cpu_ns, 301U);
  EXPECT_FALSE(PartOf(sample, 0, 600));
  EXPECT_FALSE(PartOf(sample, 1000, 2000));
  const Sample instant{.time_ns = 1000, .wall_ns = 0, .cpu_ns = 5, .count = 0};
  EXPECT_EQ(PartOf(instant, 0, 1000), instant);
  EXPECT_FALSE(PartOf(instant, 1000, 2000));
}

TEST_F(FoldTest, TimeBeforeAThreadsFirstLookIsToldApart) {
  Busy(1, kEmptyStack);
  Sample unseen{.time_ns = 500 * kMs,
                .wall_ns = 400 * kMs,
                .thread = worker_,
                .count = 400,
                .flags = kSampleUnseen};
  recording_.Add(unseen);
  const Profile profile = MustFold({.thread = {}, .until_ns = {}, .include_idle = true});
  EXPECT_EQ(profile.total.wall_ns, 401 * kMs);
  EXPECT_EQ(profile.unseen, (Weights{.samples = 400, .wall_ns = 400 * kMs}));
  EXPECT_EQ(MustFold().unseen, Weights{}) << "that of a thread left out is left out";
}

TEST_F(FoldTest, HidesIdleThreadsUnlessAsked) {
  Busy(1, run_);
  Idle(500, 500);
  const Profile profile = MustFold();
  ASSERT_EQ(profile.threads.size(), 1U);
  EXPECT_EQ(profile.threads[0].thread, main_);
  EXPECT_THAT(profile.idle_hidden, ElementsAre(worker_));
  EXPECT_EQ(profile.total, profile.threads[0].total);

  const Profile all = MustFold({.thread = {}, .until_ns = {}, .include_idle = true});
  ASSERT_EQ(all.threads.size(), 2U);
  EXPECT_EQ(all.threads[0].thread, main_) << "most CPU time first";
  EXPECT_THAT(all.idle_hidden, IsEmpty());
}

TEST_F(FoldTest, AProgramThatOnlyWaitsIsShown) {
  Idle(500, 500);
  const Profile profile = MustFold();
  EXPECT_EQ(profile.threads.size(), 1U);
  EXPECT_THAT(profile.idle_hidden, IsEmpty());
}

TEST_F(FoldTest, WhatThreadsNotSampledUsedIsNoThread) {
  Idle(500, 500);
  const ThreadIndex none = MakeThread(recording_.mutable_tables(), 0, "threads not sampled");
  recording_.Add({.time_ns = 500 * kMs,
                  .cpu_ns = 9 * kMs,
                  .thread = none,
                  .count = 0,
                  .flags = kSampleUnseen | kSampleOnCpu});
  const Profile profile = MustFold();
  EXPECT_EQ(profile.threads.size(), 2U) << "the idle thread is the only one there is";
  EXPECT_EQ(profile.CountThreads(), 1U);
  for (const char* filter : {"sampled", "0"}) {
    EXPECT_FALSE(Fold(recording_, {.thread = filter, .until_ns = {}})) << filter;
  }
}

TEST_F(FoldTest, AThreadIsJudgedByItsOwnLifetime) {
  for (int64_t ms = 1; ms <= 1000; ++ms) Busy(ms, run_);
  // Lives for ten looks of a thousand; one of them shows it running, and hardly charged so far.
  Idle(500, 9);
  recording_.Add({.time_ns = 501 * kMs,
                  .wall_ns = kMs,
                  .cpu_ns = 50'000,
                  .thread = worker_,
                  .stack = run_,
                  .flags = kSampleOnCpu});
  EXPECT_THAT(MustFold().idle_hidden, IsEmpty());
}

TEST_F(FoldTest, TellsWhetherAThreadIsMeant) {
  EXPECT_TRUE(MeansAThread(recording_.tables(), "orker"));
  EXPECT_TRUE(MeansAThread(recording_.tables(), "100"));
  EXPECT_FALSE(MeansAThread(recording_.tables(), "nosuch"));
}

TEST_F(FoldTest, ListsThreadsByTimeAndThoseOfOneKindTogether) {
  Tables& tables = recording_.mutable_tables();
  for (uint64_t i = 1; i <= 30; ++i) {
    const ThreadIndex thread = MakeThread(tables, 200 + i, fmt::format("Thread-{} (serve)", i));
    recording_.Add({.time_ns = 1'000'000, .wall_ns = kMs, .cpu_ns = 1000, .thread = thread});
  }
  MakeThread(tables, 0, "threads not sampled");
  for (const uint64_t tid : {300, 301}) MakeThread(tables, tid, "python3");
  Idle(500, 500);
  Busy(1, run_);
  const Result<Profile> none = Fold(recording_, {.thread = "nosuch", .until_ns = {}});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().message,
            "no thread matches 'nosuch'; the recording has: MainThread (100); "
            "Thread-N (serve), 30 of them; worker-1 (101); python3, 2 of them");
}

TEST_F(FoldTest, FiltersThreadsByPartOfNameOrTid) {
  Busy(1, run_);
  Idle(500, 500);
  for (const char* filter : {"orker", "worker-1", "101"}) {
    const Profile profile = MustFold({.thread = filter, .until_ns = {}});
    ASSERT_EQ(profile.threads.size(), 1U) << filter;
    EXPECT_EQ(profile.threads[0].thread, worker_) << filter;
  }
  const Result<Profile> none = Fold(recording_, {.thread = "10", .until_ns = {}});
  ASSERT_FALSE(none.has_value()) << "a tid must match whole";
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(none.error().message, HasSubstr("MainThread (100); worker-1 (101)"));
}

TEST_F(FoldTest, LongThreadListsAreCutInMessages) {
  for (uint64_t tid = 1000; tid < 1100; ++tid) MakeThread(recording_.mutable_tables(), tid, "");
  const Result<Profile> none = Fold(recording_, {.thread = "nobody", .until_ns = {}});
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("and 82 more"));
}

TEST_F(FoldTest, ARangeTakesTheSamplesThatEndInIt) {
  for (int64_t ms = 1; ms <= 10; ++ms) Busy(ms, run_);
  const Profile part = MustFold({.thread = {}, .since_ns = 2 * kMs, .until_ns = 5 * int64_t{kMs}});
  EXPECT_EQ(part.total.samples, 3U) << "those ending at 3, 4 and 5 ms";
  EXPECT_EQ(part.since_ns, 2 * kMs);
  EXPECT_EQ(part.until_ns, 5 * kMs);

  const Profile rest = MustFold({.thread = {}, .since_ns = 5 * kMs, .until_ns = {}});
  EXPECT_EQ(rest.total.samples, 5U);
  EXPECT_EQ(rest.until_ns, 10 * kMs);
  EXPECT_EQ(MustFold().total.samples, 10U);
}

TEST_F(FoldTest, EmptyRangesAreRefused) {
  Busy(1, run_);
  const Result<Profile> backwards = Fold(recording_, {.thread = {}, .since_ns = 5, .until_ns = 5});
  ASSERT_FALSE(backwards.has_value());
  EXPECT_EQ(backwards.error().code, ErrorCode::kInvalidArgument);
  const Result<Profile> after =
      Fold(recording_, {.thread = {}, .since_ns = 2 * kMs, .until_ns = {}});
  ASSERT_FALSE(after.has_value());
  EXPECT_THAT(after.error().message, HasSubstr("ends at 0.001 s"));
}

TEST_F(FoldTest, ARecordingWithoutSamplesFoldsToNothing) {
  const Profile profile = MustFold();
  EXPECT_TRUE(profile.threads.empty());
  EXPECT_EQ(profile.total, Weights{});
}

TEST_F(FoldTest, ManyThreadsAndStacksStayApart) {
  Tables& tables = recording_.mutable_tables();
  std::vector<StackId> stacks;
  for (uint32_t line = 1; line <= 300; ++line) stacks.push_back(MakeStack(tables, {{"f", line}}));
  std::vector<ThreadIndex> threads;
  for (uint64_t tid = 0; tid < 50; ++tid) threads.push_back(MakeThread(tables, 1000 + tid, ""));
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t t = 0; t < threads.size(); ++t) {
      for (uint32_t s = 0; s < stacks.size(); ++s) {
        recording_.Add({.time_ns = 1,
                        .wall_ns = t + 1,
                        .cpu_ns = s + 1,
                        .thread = threads[t],
                        .stack = stacks[s]});
      }
    }
  }
  const Profile profile = MustFold();
  ASSERT_EQ(profile.threads.size(), 50U);
  for (const ThreadProfile& thread : profile.threads) {
    ASSERT_EQ(thread.stacks.size(), 300U);
    const uint64_t wall = 3 * (ToIndex(thread.thread) - ToIndex(threads[0]) + 1);
    for (uint32_t s = 0; s < 300; ++s) {
      ASSERT_EQ(thread.stacks[s].stack, stacks[s]);
      ASSERT_EQ(thread.stacks[s].self.wall_ns, wall);
      ASSERT_EQ(thread.stacks[s].self.cpu_ns, 3 * (s + 1));
    }
  }
}

}  // namespace
}  // namespace pystrobe
