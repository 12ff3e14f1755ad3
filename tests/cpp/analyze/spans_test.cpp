// SPDX-License-Identifier: Apache-2.0
//
// The calls of a timeline, and of a range of it.
#include "profiler/analyze/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/cpp/support/memory_recording.h"

namespace pystrobe {
namespace {

using ::testing::HasSubstr;
using testing::MakeFrame;
using testing::MakeThread;
using testing::MemoryRecording;

using Fields = std::tuple<uint32_t, uint32_t, int64_t, int64_t, bool, bool>;

class SpansTest : public ::testing::Test {
 protected:
  SpansTest() {
    Metadata& metadata = recording_.mutable_metadata();
    metadata.pause_mode = kByTracing;
    metadata.timeline = true;
    recording_.mutable_quality().complete = true;
    for (const char* name : {"first", "second"}) {
      threads_.push_back(MakeThread(recording_.mutable_tables(), threads_.size() + 1, name));
    }
  }

  StackId Push(StackId parent, int function) {
    Tables& tables = recording_.mutable_tables();
    return tables.Push(parent, MakeFrame(tables, {"f" + std::to_string(function), 1}));
  }
  void Append(ThreadIndex thread, const std::vector<CallEvent>& events) {
    ASSERT_TRUE(recording_.AppendCalls(recording_.tables(), thread, events));
    recording_.mutable_quality().duration_ns =
        std::max(recording_.quality().duration_ns, events.back().time_ns);
  }

  /// Calls one within the other; some take no time.
  void CallAtRandom(unsigned seed) {
    std::mt19937 random(seed);
    for (const ThreadIndex thread : threads_) {
      std::vector<CallEvent> events;
      StackId at = kEmptyStack;
      size_t depth = 0;
      for (int i = 0; i < 400 || depth > 0; ++i) {
        const bool leaves = depth > 0 && (i >= 400 || depth > 5 || random() % 2 == 0);
        at = leaves ? recording_.tables().stack(at).parent
                    : Push(at, static_cast<int>(random() % 3));
        depth = leaves ? depth - 1 : depth + 1;
        const int64_t before = events.empty() ? 0 : events.back().time_ns;
        events.push_back({before + static_cast<int64_t>(random() % 4), at});
      }
      Append(thread, events);
    }
  }

  std::vector<Fields> Spans(const TimeRange& range) const {
    std::vector<Fields> spans;
    const auto read = ForEachSpan(
        recording_,
        [&](const Span& span) {
          spans.emplace_back(ToIndex(span.thread), ToIndex(span.stack), span.begin_ns, span.end_ns,
                             span.began_before, span.goes_on);
        },
        range);
    EXPECT_TRUE(read);
    std::ranges::sort(spans);
    return spans;
  }

  Profile MustFold(const FoldOptions& options) const {
    auto profile = Fold(recording_, options);
    EXPECT_TRUE(profile) << (profile ? "" : profile.error().message);
    return profile.value_or(Profile{});
  }

  MemoryRecording recording_;
  std::vector<ThreadIndex> threads_;
};

TEST_F(SpansTest, ARangeHasThePartsOfCallsThatAreInIt) {
  CallAtRandom(1);
  const int64_t end = recording_.quality().duration_ns;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int64_t since = 1 + static_cast<int64_t>(random() % static_cast<unsigned>(end - 2));
    const int64_t until =
        since + 1 + static_cast<int64_t>(random() % static_cast<unsigned>(end - since));
    std::vector<Fields> expected;
    for (const auto& [thread, stack, begin, finish, before, after] : Spans({})) {
      EXPECT_FALSE(before || after);
      // Neither over when the range begins, nor begun after it.
      if (finish <= since || begin > until) continue;
      expected.emplace_back(thread, stack, std::max(begin, since), std::min(finish, until),
                            begin <= since, finish > until);
    }
    std::ranges::sort(expected);
    EXPECT_EQ(Spans({since, until}), expected) << since << " to " << until;
  }
}

TEST_F(SpansTest, EdgesOfARangeAreNested) {
  CallAtRandom(2);
  std::map<ThreadIndex, std::vector<StackId>> open;
  std::map<ThreadIndex, int64_t> last;
  const TimeRange range{100, 300};
  const auto read = ForEachEdge(
      recording_,
      [&](const Span& span, bool begins) {
        const int64_t now = begins ? span.begin_ns : span.end_ns;
        EXPECT_GE(now, std::max(last[span.thread], range.since_ns));
        EXPECT_LE(now, range.until_ns);
        last[span.thread] = now;
        std::vector<StackId>& stack = open[span.thread];
        if (begins) {
          const StackId around = stack.empty() ? kEmptyStack : stack.back();
          EXPECT_EQ(recording_.tables().stack(span.stack).parent, around);
          stack.push_back(span.stack);
        } else {
          ASSERT_FALSE(stack.empty());
          EXPECT_EQ(stack.back(), span.stack);
          stack.pop_back();
        }
      },
      range);
  ASSERT_TRUE(read);
  for (const auto& [thread, stack] : open) EXPECT_TRUE(stack.empty());
}

TEST_F(SpansTest, PartsAddUpToTheWhole) {
  CallAtRandom(3);
  const int64_t end = recording_.quality().duration_ns;
  std::map<StackId, Weights> whole, parts;
  uint64_t began = 0;
  const auto add = [&](std::map<StackId, Weights>& sums, const FoldOptions& options) {
    const Profile profile = MustFold(options);
    for (const ThreadProfile& thread : profile.threads) {
      for (const StackWeight& stack : thread.stacks) sums[stack.stack] += stack.self;
    }
    EXPECT_FALSE(profile.has_cpu_time);
    began += profile.part.value_or(CallsOfPart{}).began;
  };
  add(whole, {.until_ns = end});
  EXPECT_EQ(began, Spans({}).size());
  began = 0;
  for (int64_t at = 0; at < end; at += 37) add(parts, {.since_ns = at, .until_ns = at + 37});
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(began, Spans({}).size());
  Weights sum;
  for (const auto& [stack, weights] : whole) sum += weights;
  EXPECT_EQ(sum.samples, began);
}

TEST_F(SpansTest, WhatIsCutIsCounted) {
  const StackId outer = Push(kEmptyStack, 0), inner = Push(outer, 1), other = Push(outer, 2);
  Append(threads_[0], {{10, outer},
                       {20, inner},
                       {30, outer},
                       {40, other},
                       {60, outer},
                       {70, inner},
                       {70, outer},
                       {90, kEmptyStack}});
  Append(threads_[1], {{5, outer}, {200, kEmptyStack}});
  const Profile both = MustFold({.since_ns = 25, .until_ns = 50});
  ASSERT_TRUE(both.part);
  EXPECT_EQ(both.part->began, 1U) << "other";
  EXPECT_EQ(both.part->began_before, 3U) << "outer, inner, and outer of the second thread";
  EXPECT_EQ(both.part->go_on, 3U) << "outer, other, and outer of the second thread";
  EXPECT_EQ(both.total.wall_ns, 50U);
  EXPECT_EQ(both.total.samples, 1U);
  const Profile one = MustFold({.thread = "first", .since_ns = 30, .until_ns = 70});
  EXPECT_EQ(one.part->began, 2U) << "other, and inner that took no time";
  EXPECT_EQ(one.part->began_before, 1U);
  EXPECT_EQ(one.part->go_on, 1U);
  const std::vector<StackWeight>& stacks = one.threads.at(0).stacks;
  ASSERT_EQ(stacks.size(), 3U);
  EXPECT_EQ(stacks[0].self.wall_ns, 20U);
  EXPECT_EQ(stacks[1].self.samples, 1U);
  EXPECT_EQ(stacks[2].self.wall_ns, 20U);
  EXPECT_FALSE(MustFold({}).part) << "the whole is no part";
}

TEST_F(SpansTest, WithoutATimelineThereIsNoPart) {
  recording_.mutable_metadata().timeline = false;
  const auto refused = Fold(recording_, {.since_ns = 5});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("with --timeline"));
}

TEST(ChooseMode, OfCalls) {
  testing::MemoryRecording of_calls;
  const RecordingSource& recording = of_calls;
  Metadata& calls = of_calls.mutable_metadata();
  calls.pause_mode = kByTracing;
  EXPECT_EQ(ChooseMode(recording, {}).value(), Mode::kWall);
  EXPECT_EQ(ChooseMode(recording, Mode::kCpu).value(), Mode::kCpu);
  const auto of_part = ChooseMode(recording, Mode::kCpu, true);
  ASSERT_FALSE(of_part);
  EXPECT_THAT(of_part.error().message, HasSubstr("a part of a timeline has no CPU time"));
  calls.clock = CallClock::kCpu;
  EXPECT_EQ(ChooseMode(recording, {}).value(), Mode::kCpu);
  EXPECT_EQ(ChooseMode(recording, {}, true).value(), Mode::kWall);
  EXPECT_EQ(ChooseMode(recording, Mode::kWall).value(), Mode::kWall);
  calls.clock = CallClock::kWall;
  EXPECT_EQ(ChooseMode(recording, {}).value(), Mode::kWall);
  const auto of_wall = ChooseMode(recording, Mode::kCpu);
  ASSERT_FALSE(of_wall);
  EXPECT_THAT(of_wall.error().message, HasSubstr("have no CPU time"));
}

}  // namespace
}  // namespace pystrobe
