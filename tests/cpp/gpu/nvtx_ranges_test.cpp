// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvtx_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/cpp/gpu/recorded_ranges.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class NvtxRangesTest : public ::testing::Test {
 protected:
  NvtxRangesTest() : ranges_(**NvtxRanges::OfThisProcess()), other_(ranges_.Domain("other")) {}
  ~NvtxRangesTest() override { EXPECT_EQ(ranges_.Pop(0), -1) << "it leaves nothing open"; }

  void Once(const std::string& name) {
    ranges_.Push(0, name);
    ranges_.Pop(0);
  }
  RangeInstances::Instance Innermost() const {
    return ranges_.instances()
        .FindLabel(NvtxRanges::Current())
        .value_or(RangeInstances::Instance{.node = RangeNodes::kNone});
  }

  NvtxRanges& ranges_;
  const uint32_t other_;
};

TEST_F(NvtxRangesTest, AreATreeOfNames) {
  RecordedRanges recorded;
  for (int i = 0; i < 3; ++i) {
    ranges_.Push(0, "step");
    Once("forward");
    ranges_.Push(other_, "forward");
    Once("kernel");
    ranges_.Pop(other_);
    ranges_.Pop(0);
  }
  Once("forward");
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("forward", 1), Pair("step", 3), Pair("step/forward", 3),
                          Pair("step/other:forward", 3), Pair("step/other:forward/kernel", 3)));
}

TEST_F(NvtxRangesTest, LevelsAreOfEachDomain) {
  EXPECT_EQ(ranges_.Push(0, "a"), 0);
  EXPECT_EQ(ranges_.Push(0, "b"), 1);
  EXPECT_EQ(ranges_.Push(other_, "c"), 0);
  EXPECT_EQ(ranges_.Push(0, "d"), 2);
  EXPECT_EQ(ranges_.Pop(0), 2);
  EXPECT_EQ(ranges_.Pop(0), 1);
  EXPECT_EQ(ranges_.Pop(other_), 0);
  EXPECT_LT(ranges_.Pop(other_), 0);
  EXPECT_EQ(ranges_.Pop(0), 0);
}

TEST_F(NvtxRangesTest, APopClosesTheInnermostOfItsDomain) {
  RecordedRanges recorded;
  ranges_.Push(0, "a");
  ranges_.Push(other_, "b");
  ranges_.Pop(0);
  Once("c");
  ranges_.Pop(other_);
  Once("d");
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("a", 1), Pair("a/other:b", 1), Pair("d", 1), Pair("other:b/c", 1)));
}

TEST_F(NvtxRangesTest, WhatOutlivesTheRangeAroundItIsWithinTheNextOneAround) {
  RecordedRanges recorded;
  ranges_.Push(0, "epoch");
  const auto epoch = Innermost();
  uint64_t last = ranges_.Start(0, "load");
  for (int i = 0; i < 100; ++i) {
    const uint64_t next = ranges_.Start(0, "load");
    ranges_.End(last);
    EXPECT_EQ(Innermost().parent, epoch.number);
    EXPECT_TRUE(Innermost().continues);
    last = next;
  }
  ranges_.End(last);
  ranges_.Pop(0);
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("epoch", 1), Pair("epoch/load", 1), Pair("epoch/load/load", 100)));
}

TEST_F(NvtxRangesTest, ALaunchFindsTheInnermostAndWhatItIsWithin) {
  EXPECT_EQ(NvtxRanges::Current(), 0U);
  RecordedRanges recorded;
  EXPECT_EQ(NvtxRanges::Current(), 0U);
  ranges_.Push(0, "outer");
  const auto outer = Innermost();
  EXPECT_EQ(outer.parent, 0U);
  ranges_.Push(0, "inner");
  const auto inner = Innermost();
  EXPECT_EQ(inner.parent, outer.number);
  EXPECT_NE(inner.node, outer.node);
  ranges_.Pop(0);
  EXPECT_EQ(Innermost().number, outer.number);
  ranges_.Push(0, "inner");
  EXPECT_NE(Innermost().number, inner.number);
  EXPECT_EQ(Innermost().node, inner.node);
  recorded.End();
  EXPECT_EQ(NvtxRanges::Current(), 0U);
  ranges_.Pop(0);
  ranges_.Pop(0);
}

TEST_F(NvtxRangesTest, WhatIsOpenAtTheBeginCountsFromThen) {
  ranges_.Push(0, "outer");
  ranges_.Push(0, "inner");
  usleep(20'000);
  const Nanoseconds begin = MonotonicNow();
  RecordedRanges recorded({.max_spans = 10});
  EXPECT_NE(NvtxRanges::Current(), 0U);
  ranges_.Pop(0);
  Once("inner");
  const FoundRanges& found = recorded.End();
  const Nanoseconds end = MonotonicNow();
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("outer", 1), Pair("outer/inner", 2)));
  EXPECT_LE(recorded.HostOf("outer"), static_cast<uint64_t>((end - begin).count()));
  EXPECT_GE(recorded.HostOf("outer"), recorded.HostOf("outer/inner"));
  EXPECT_GT(recorded.HostOf("outer/inner"), 0U);
  ASSERT_THAT(found.spans, SizeIs(3));
  EXPECT_GE(found.spans[0].begin_ns, begin.count());
  ranges_.Pop(0);
}

TEST_F(NvtxRangesTest, APopAfterTheEndIsOfAPushBefore) {
  {
    RecordedRanges recorded;
    ranges_.Push(0, "a");
  }
  RecordedRanges recorded;
  EXPECT_EQ(ranges_.Pop(0), 0);
  EXPECT_EQ(ranges_.Pop(0), -1);
  recorded.End();
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("a", 1))) << "it was open at the begin";
}

TEST_F(NvtxRangesTest, ARestartForgetsWhatWas) {
  RecordedRanges recorded({.max_spans = 10});
  ranges_.Push(0, "a");
  Once("b");
  const uint32_t before = NvtxRanges::Current();
  recorded.Restart();
  EXPECT_NE(NvtxRanges::Current(), before);
  EXPECT_FALSE(ranges_.instances().FindLabel(before));
  Once("c");
  ranges_.Pop(0);
  EXPECT_THAT(recorded.End().spans, SizeIs(2));
  EXPECT_THAT(recorded.Counts(), ElementsAre(Pair("a", 1), Pair("a/c", 1)));
}

TEST_F(NvtxRangesTest, OneRecordingAtATime) {
  RecordedRanges recorded;
  const auto second = ranges_.BeginRecording({});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "the ranges of this process are recorded already");
  EXPECT_THAT(ranges_.EndRecording(~uint64_t{0}, MonotonicNow()).nodes, IsEmpty());
  Once("a");
  EXPECT_THAT(recorded.End().nodes, SizeIs(2));
}

TEST_F(NvtxRangesTest, SpansAreTheLastOnes) {
  RecordedRanges recorded({.max_spans = 4});
  for (int i = 0; i < 10; ++i) Once(std::to_string(i));
  const FoundRanges& found = recorded.End();
  EXPECT_EQ(found.spans_lost, 6U);
  ASSERT_THAT(found.spans, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(recorded.PathOf(found.spans[i].node), std::to_string(6 + i));
    EXPECT_EQ(found.spans[i].tid, static_cast<uint32_t>(gettid()));
    EXPECT_LE(found.spans[i].begin_ns, found.spans[i].end_ns);
    const size_t last = i == 0 ? 0 : i - 1;
    EXPECT_LE(found.spans[last].end_ns, found.spans[i].end_ns);
  }
}

TEST_F(NvtxRangesTest, NamesThatThereIsNoRoomForAreOne) {
  RecordedRanges recorded({.max_names = 3, .max_spans = 10});
  ranges_.Push(0, "a");
  ranges_.Push(0, "b");
  ranges_.Push(0, "c");
  const auto third = Innermost();
  EXPECT_EQ(third.node, RangeNodes::kOther);
  ranges_.Push(0, "d");
  EXPECT_EQ(Innermost().number, third.number) << "its work would count twice";
  ranges_.Pop(0);
  ranges_.Pop(0);
  EXPECT_EQ(Innermost().node, 2U);
  ranges_.Pop(0);
  ranges_.Pop(0);
  EXPECT_THAT(recorded.End().spans, SizeIs(3));
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair("(other ranges)", 2), Pair("a", 1), Pair("a/b", 1)));
  EXPECT_LE(recorded.HostOf("(other ranges)"), recorded.HostOf("a"));
}

TEST_F(NvtxRangesTest, WhereNoMoreInstancesAreLeftALaunchIsOfWhatTheyAreWithin) {
  RecordedRanges recorded({.instances = 4});
  for (int i = 0; i < 4; ++i) ranges_.Push(0, "a");
  const auto last = Innermost();
  ranges_.Push(0, "b");
  EXPECT_EQ(Innermost().number, last.number);
  for (int i = 0; i < 5; ++i) ranges_.Pop(0);
  recorded.End();
  EXPECT_EQ(recorded.Counts()["a/a/a/a/b"], 1U);
}

TEST_F(NvtxRangesTest, TooDeepOnesAreCountedAndClosedAgain) {
  RecordedRanges recorded;
  constexpr int kDeep = ThreadRanges::kMaxOpen + 100;
  for (int i = 0; i < kDeep; ++i) ASSERT_EQ(ranges_.Push(0, "a"), i);
  ASSERT_EQ(ranges_.Push(other_, "b"), 0);
  EXPECT_EQ(ranges_.Start(0, "c"), 0U);
  ASSERT_EQ(ranges_.Pop(other_), 0);
  for (int i = kDeep; i-- > 0;) ASSERT_EQ(ranges_.Pop(0), i);
  Once("e");
  recorded.End();
  EXPECT_EQ(recorded.Counts()["e"], 1U);
  EXPECT_EQ(recorded.Counts()[std::string(RangeNodes::kOtherName)], 102U) << "are not kept";
}

TEST_F(NvtxRangesTest, LongNamesAreCutBetweenCharacters) {
  RecordedRanges recorded;
  std::string name(RangeNodes::kMaxName - 1, 'x');
  Once(name + "\xE2\x82\xAC and more");
  Once(std::string(1 << 20, 'y'));
  Once("\xFF\xFE");
  recorded.End();
  EXPECT_THAT(recorded.Counts(),
              ElementsAre(Pair(name, 1), Pair(std::string(RangeNodes::kMaxName, 'y'), 1),
                          Pair("\xFF\xFE", 1)));
}

TEST_F(NvtxRangesTest, DomainsThatThereIsNoRoomForAreOne) {
  // Some are of other tests.
  uint32_t last = 0;
  for (int i = 0; i < 300; ++i) last = ranges_.Domain("domain " + std::to_string(i));
  EXPECT_EQ(last, NameTable::kOther);
  EXPECT_EQ(ranges_.Domain("other"), other_);
  EXPECT_EQ(ranges_.domain(last), "(other domains)");
  EXPECT_EQ(ranges_.Domain(""), 0U);
  EXPECT_LT(ranges_.Push(last, "of one of them"), 0) << "nor could be told from others";
  EXPECT_LT(ranges_.Pop(last), 0);
  EXPECT_LT(ranges_.Push(1'000, "of no domain"), 0);
  EXPECT_LT(ranges_.Pop(1'000), 0);
}

}  // namespace
}  // namespace pystrobe::gpu
