// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_projection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gpu/range_nodes.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Place {
  uint32_t stream = 7;
  uint32_t device = 0;
};

class RangeProjectionTest : public ::testing::Test {
 protected:
  RangeProjectionTest() : instances_(*RangeInstances::Make()) {}

  static GpuWork Work(uint32_t instance, int64_t begin_ns, int64_t end_ns, Place place = {}) {
    return {.device = place.device,
            .stream = place.stream,
            .origin = {.path = 1, .range = RangeInstances::LabelOf(instance)},
            .begin_ns = begin_ns,
            .end_ns = end_ns};
  }
  /// Opened, with one work of a nanosecond in it, and closed.
  void OnceThrough(RangeProjection& projection, uint32_t node, int64_t begin_ns) {
    const uint32_t instance = instances_.Begin(node, 0);
    projection.Add(Work(instance, begin_ns, begin_ns + 1));
    instances_.End(instance);
  }
  static RangeStreamSum SumOf(const RangeProjection& projection, uint32_t node) {
    for (const RangeStreamSum& sum : projection.Sums()) {
      if (sum.node == node) return sum;
    }
    return {};
  }

  RangeInstances instances_;
};

TEST_F(RangeProjectionTest, IsFromTheFirstWorkToTheLastOfEachInstance) {
  RangeProjection projection(&instances_);
  const uint32_t first = instances_.Begin(5, 0);
  projection.Add(Work(first, 1000, 1100));
  projection.Add(Work(first, 1500, 1700));
  projection.Add(Work(first, 900, 950));
  instances_.End(first);
  const uint32_t second = instances_.Begin(5, 0);
  projection.Add(Work(second, 5000, 5010));
  EXPECT_THAT(projection.Sums(), ElementsAre(RangeStreamSum{.node = 5,
                                                            .stream = 7,
                                                            .instances = 2,
                                                            .span_ns = 800 + 10,
                                                            .busy_ns = 350 + 10,
                                                            .works = 4}));
}

TEST_F(RangeProjectionTest, WhatGoesOnIsCountedOnce) {
  RangeProjection projection(&instances_);
  const uint32_t before = instances_.Begin(5, 0);
  projection.Add(Work(before, 1000, 1100));
  instances_.End(before);
  projection.Add(Work(instances_.Begin(5, 0, true), 1500, 1700));
  EXPECT_EQ(SumOf(projection, 5).instances, 1U);
  EXPECT_EQ(SumOf(projection, 5).works, 2U);
}

TEST_F(RangeProjectionTest, BranchesOfAGraphAreBusyForNoMoreThanTheSpan) {
  RangeProjection projection(&instances_);
  const uint32_t instance = instances_.Begin(5, 0);
  for (int i = 0; i < 5; ++i) projection.Add(Work(instance, 1000, 2000));
  EXPECT_EQ(SumOf(projection, 5).span_ns, 1000U);
  EXPECT_EQ(SumOf(projection, 5).busy_ns, 1000U);
}

TEST_F(RangeProjectionTest, WorkCountsForAllRangesThatItIsWithin) {
  RangeProjection projection(&instances_);
  const uint32_t outer = instances_.Begin(1, 0);
  const uint32_t inner = instances_.Begin(2, outer);
  const uint32_t other = instances_.Begin(2, outer);
  projection.Add(Work(inner, 100, 110));
  projection.Add(Work(other, 200, 220));
  projection.Add(Work(outer, 300, 330));
  EXPECT_EQ(
      SumOf(projection, 1),
      (RangeStreamSum{
          .node = 1, .stream = 7, .instances = 1, .span_ns = 230, .busy_ns = 60, .works = 3}));
  EXPECT_EQ(SumOf(projection, 2),
            (RangeStreamSum{
                .node = 2, .stream = 7, .instances = 2, .span_ns = 30, .busy_ns = 30, .works = 2}));
}

TEST_F(RangeProjectionTest, StreamsAndDevicesAreApart) {
  RangeProjection projection(&instances_);
  const uint32_t range = instances_.Begin(1, 0);
  projection.Add(Work(range, 100, 110));
  projection.Add(Work(range, 100, 120, {.stream = 8}));
  projection.Add(Work(range, 100, 130, {.device = 1}));
  EXPECT_THAT(
      projection.Sums(),
      UnorderedElementsAre(
          RangeStreamSum{
              .node = 1, .stream = 7, .instances = 1, .span_ns = 10, .busy_ns = 10, .works = 1},
          RangeStreamSum{
              .node = 1, .stream = 8, .instances = 1, .span_ns = 20, .busy_ns = 20, .works = 1},
          RangeStreamSum{.node = 1,
                         .device = 1,
                         .stream = 7,
                         .instances = 1,
                         .span_ns = 30,
                         .busy_ns = 30,
                         .works = 1}));
}

TEST_F(RangeProjectionTest, WorkWithoutTimesIsCountedAlone) {
  RangeProjection projection(&instances_);
  const uint32_t range = instances_.Begin(1, 0);
  projection.Add(Work(range, 0, 0));
  EXPECT_EQ(SumOf(projection, 1),
            (RangeStreamSum{.node = 1, .stream = 7, .instances = 1, .works = 1}));
  projection.Add(Work(range, 100, 110));
  projection.Add(Work(range, 0, 0));
  EXPECT_EQ(SumOf(projection, 1).span_ns, 10U);
  EXPECT_EQ(SumOf(projection, 1).works, 3U);
}

TEST_F(RangeProjectionTest, WhatIsInNoRangeOrInOneThatIsForgottenIsPassedOver) {
  RangeProjection projection(&instances_);
  projection.Add(Work(0, 100, 110));
  const uint32_t range = instances_.Begin(1, 0);
  instances_.Clear();
  projection.Add(Work(range, 100, 110));
  EXPECT_THAT(projection.Sums(), IsEmpty());
  RangeProjection without(nullptr);
  without.Add(Work(instances_.Begin(1, 0), 100, 110));
  EXPECT_THAT(without.Sums(), IsEmpty());
}

TEST_F(RangeProjectionTest, ManyMoreInstancesThanThereIsRoomForAreAllCounted) {
  RangeProjection projection(&instances_, {.max_open = 8});
  for (int i = 0; i < 1'000; ++i) OnceThrough(projection, 1 + i % 3, 100 + i);
  EXPECT_EQ(SumOf(projection, 1).instances, 334U);
  EXPECT_EQ(SumOf(projection, 2).instances, 333U);
  EXPECT_EQ(SumOf(projection, 3).works, 333U);
  EXPECT_EQ(SumOf(projection, 3).span_ns, 333U);
}

// It is the oldest, but it goes on.
TEST_F(RangeProjectionTest, AnInstanceThatIsOpenIsOneHoweverManyComeAndGo) {
  RangeProjection projection(&instances_, {.max_open = 8});
  const uint32_t outer = instances_.Begin(50, 0);
  projection.Add(Work(outer, 1, 2));
  for (int i = 0; i < 1'000; ++i) OnceThrough(projection, 1 + i % 3, 100 + i);
  projection.Add(Work(outer, 5'000, 5'001));
  EXPECT_EQ(
      SumOf(projection, 50),
      (RangeStreamSum{
          .node = 50, .stream = 7, .instances = 1, .span_ns = 5'000, .busy_ns = 2, .works = 2}));
}

TEST_F(RangeProjectionTest, WhereAllAreOpenThoseThatWereNotSeenLongestMakeRoom) {
  RangeProjection projection(&instances_, {.max_open = 4});
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < 100; ++i) {
    open.push_back(instances_.Begin(1, 0));
    projection.Add(Work(open.back(), 100, 110));
  }
  EXPECT_EQ(SumOf(projection, 1).instances, 100U);
  EXPECT_EQ(SumOf(projection, 1).busy_ns, 1'000U);
}

TEST_F(RangeProjectionTest, SumsThatThereIsNoRoomForAreOne) {
  RangeProjection projection(&instances_, {.max_open = 4, .max_sums = 2});
  for (int i = 0; i < 100; ++i) OnceThrough(projection, 1 + i % 10, 100 + i);
  EXPECT_EQ(projection.Sums().size(), 3U);
  EXPECT_EQ(SumOf(projection, RangeNodes::kOther).works, 80U);
}

TEST_F(RangeProjectionTest, ClearForgetsAll) {
  RangeProjection projection(&instances_, {.max_open = 4});
  for (int i = 0; i < 10; ++i) OnceThrough(projection, 1, 100 + i);
  projection.Clear();
  EXPECT_THAT(projection.Sums(), IsEmpty());
  OnceThrough(projection, 1, 100);
  EXPECT_EQ(SumOf(projection, 1).works, 1U);
}

}  // namespace
}  // namespace pystrobe::gpu
