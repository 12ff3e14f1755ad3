// SPDX-License-Identifier: Apache-2.0
#include "gpu/idle_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "tests/cpp/support/units.h"

namespace pystrobe::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kMs;

struct Charged {
  IdleCause cause;
  uint32_t from, to;
  uint64_t count, total_ns;

  bool operator==(const Charged&) const = default;
};

void PrintTo(const Charged& charged, std::ostream* out) {
  *out << "cause " << static_cast<int>(charged.cause) << " from " << charged.from << " to "
       << charged.to << ": " << charged.count << " in " << charged.total_ns << " ns";
}

class IdleTimeTest : public ::testing::Test {
 protected:
  // From `begin_ns` to `end_ns`; launched at `launch_ns` on `path`.
  void Work(int64_t launch_ns, int64_t begin_ns, int64_t end_ns, uint32_t path,
            uint32_t device = 0) {
    idle_.Add(GpuWork{.device = device,
                      .origin = {.path = path},
                      .launch = LaunchMoment{.time_ns = launch_ns, .tid = kThread},
                      .begin_ns = begin_ns,
                      .end_ns = end_ns});
  }
  void Unseen(int64_t begin_ns, int64_t end_ns) {
    idle_.Add(GpuWork{.origin = kUnknownOrigin, .begin_ns = begin_ns, .end_ns = end_ns});
  }
  std::vector<Charged> Sums() {
    idle_.Finish();
    std::vector<Charged> sums;
    for (size_t i = 0; i < idle_.size(); ++i) {
      const TimeSum& sum = idle_.sum(i);
      if (sum.count == 0) continue;
      sums.push_back(
          {idle_.key(i).cause, idle_.key(i).from, idle_.key(i).to, sum.count, sum.total_ns});
    }
    return sums;
  }

  static constexpr uint32_t kThread = 77;
  IdleTime idle_{{}};
};

TEST_F(IdleTimeTest, WithoutWorkThereIsNone) {
  EXPECT_THAT(Sums(), IsEmpty());
  EXPECT_THAT(idle_.devices(), IsEmpty());
}

TEST_F(IdleTimeTest, BeforeTheFirstAndAfterTheLastIsNone) {
  Work(5 * kMs, 6 * kMs, 7 * kMs, 1);
  EXPECT_THAT(Sums(), IsEmpty());
  ASSERT_EQ(idle_.devices().size(), 1U);
  EXPECT_EQ(idle_.devices()[0].busy_ns, 1'000'000U);
  EXPECT_EQ(idle_.devices()[0].idle_ns, 0U);
}

TEST_F(IdleTimeTest, WhatWasLaunchedInTimeWaitedForTheDevice) {
  Work(1 * kMs, 2 * kMs, 3 * kMs, 1);
  Work(1 * kMs + 10, 3 * kMs + 2'000, 4 * kMs, 2);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kQueue, 0, 2, 1, 2'000}));
  EXPECT_EQ(idle_.devices()[0].idle_ns, 2'000U);
  EXPECT_EQ(idle_.devices()[0].busy_ns, 2'000'000U - 2'000U);
}

TEST_F(IdleTimeTest, LaunchesThatComeTooLateAreToldFromOtherThings) {
  Work(1 * kMs, 1 * kMs + 5'000, 1 * kMs + 10'000, 1);
  Work(1 * kMs + 50'000, 1 * kMs + 54'000, 1 * kMs + 60'000, 2);  // steady
  Work(9 * kMs, 9 * kMs + 4'000, 9 * kMs + 9'000, 3);             // not
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kLaunch, 0, 2, 1, 4'000},
                                  Charged{IdleCause::kLaunches, 1, 2, 1, 40'000},
                                  Charged{IdleCause::kLaunch, 0, 3, 1, 4'000},
                                  Charged{IdleCause::kHost, 2, 3, 1, 8 * kMs - 60'000}));
  EXPECT_EQ(idle_.devices()[0].idle_ns, 44'000U + 8 * kMs - 56'000U);
}

TEST_F(IdleTimeTest, WhatTheProgramDidIsKnownOneByOne) {
  Work(1 * kMs, 1 * kMs + 5'000, 1 * kMs + 10'000, 1);
  Work(1 * kMs + 50'000, 1 * kMs + 54'000, 1 * kMs + 60'000, 2);  // steady
  Work(9 * kMs, 9 * kMs + 4'000, 9 * kMs + 9'000, 3);
  Sums();
  ASSERT_EQ(idle_.gaps().size(), 1U);
  const IdleGap gap = idle_.gaps()[0];
  EXPECT_EQ(gap.begin_ns, 1 * kMs + 60'000);
  EXPECT_EQ(gap.end_ns, 9 * kMs);
  EXPECT_EQ(gap.tid, kThread);
  EXPECT_EQ(idle_.key(gap.sum).cause, IdleCause::kHost);
}

TEST_F(IdleTimeTest, TheLongestAreKept) {
  idle_ = IdleTime({.max_gaps = 3});
  for (const int64_t ms : {1, 2, 9, 10, 15, 19, 21}) Work(ms * kMs, ms * kMs, ms * kMs + 1, 1);
  Sums();
  std::vector<int64_t> lengths;
  for (const IdleGap& gap : idle_.gaps()) lengths.push_back((gap.length_ns() + 1) / kMs);
  EXPECT_THAT(lengths, ::testing::UnorderedElementsAre(7, 5, 4));
  idle_.Clear();
  EXPECT_THAT(idle_.gaps(), IsEmpty());
}

TEST_F(IdleTimeTest, AWaitOfTheSameThreadIsTheCause) {
  idle_.Add(HostWait{.begin_ns = 0, .end_ns = 2 * kMs + 8'000, .tid = kThread, .path = 9});
  idle_.Add(HostWait{.begin_ns = 0, .end_ns = 2 * kMs + 9'000, .tid = kThread + 1, .path = 8});
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1);
  Work(2 * kMs + 20'000, 2 * kMs + 24'000, 3 * kMs, 2);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kLaunch, 0, 2, 1, 4'000},
                                  Charged{IdleCause::kWait, 9, 2, 1, 20'000}));
}

TEST_F(IdleTimeTest, WhatTakesLongerAfterAWaitIsNotTheWaits) {
  idle_.Add(HostWait{.begin_ns = 0, .end_ns = 2 * kMs + 8'000, .tid = kThread, .path = 9});
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1);
  Work(5 * kMs, 5 * kMs, 6 * kMs, 2);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kWait, 9, 2, 1, 8'000},
                                  Charged{IdleCause::kHost, 9, 2, 1, 3 * kMs - 8'000}));
}

TEST_F(IdleTimeTest, AWaitForADeviceThatHasNothingToDoIsNot) {
  idle_.Add(HostWait{.begin_ns = 4 * kMs, .end_ns = 4 * kMs + 9, .tid = kThread, .path = 9});
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1);
  Work(4 * kMs + 20'000, 5 * kMs, 6 * kMs, 2);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kLaunch, 0, 2, 1, kMs - 20'000},
                                  Charged{IdleCause::kHost, 1, 2, 1, 2 * kMs + 20'000}));
}

TEST_F(IdleTimeTest, AWaitThatEndedBeforeIsNot) {
  idle_.Add(HostWait{.begin_ns = 0, .end_ns = 2 * kMs - 1'000, .tid = kThread, .path = 9});
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1);
  Work(2 * kMs + 20'000, 2 * kMs + 20'000, 3 * kMs, 2);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kHost, 1, 2, 1, 20'000}));
}

TEST_F(IdleTimeTest, ALaunchThatWasNotSeenIsNoOnesFault) {
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1);
  Unseen(3 * kMs, 4 * kMs);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kUnknown, 0, 0, 1, 1'000'000}));
}

TEST_F(IdleTimeTest, StreamsThatOverlapLeaveNoGap) {
  Work(1 * kMs, 1 * kMs, 5 * kMs, 1);
  Work(1 * kMs, 2 * kMs, 3 * kMs, 2);
  Work(1 * kMs, 4 * kMs, 6 * kMs, 3);
  EXPECT_THAT(Sums(), IsEmpty());
  EXPECT_EQ(idle_.devices()[0].busy_ns, 5'000'000U);
}

TEST_F(IdleTimeTest, DevicesAreApart) {
  Work(1 * kMs, 1 * kMs, 2 * kMs, 1, 0);
  Work(1 * kMs, 3 * kMs, 4 * kMs, 2, 1);
  Work(1 * kMs, 5 * kMs, 6 * kMs, 3, 0);
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kQueue, 0, 3, 1, 3'000'000}));
  ASSERT_EQ(idle_.devices().size(), 2U);
  EXPECT_EQ(idle_.devices()[0].busy_ns, 2'000'000U);
  EXPECT_EQ(idle_.devices()[1].idle_ns, 0U);
}

// Threads have buffers of their own, so that works of one come in a row.
TEST_F(IdleTimeTest, WorksMayComeInAnyOrder) {
  for (const int64_t first : {1, 0}) {
    for (int64_t i = first; i < 100; i += 2) {
      Work(1'000'000 + i * 10'000, 1'000'000 + i * 10'000 + 1'000, 1'000'000 + i * 10'000 + 5'000,
           1);
    }
  }
  EXPECT_THAT(Sums(), ElementsAre(Charged{IdleCause::kLaunch, 0, 1, 99, 99'000},
                                  Charged{IdleCause::kLaunches, 1, 1, 99, 99 * 5'000}));
}

TEST_F(IdleTimeTest, WithoutRoomThereIsASumForEachCause) {
  idle_ = IdleTime({.max_sums = 2, .window = 4});
  for (uint32_t i = 1; i <= 50; ++i) {
    Work(1, i * kMs, i * kMs + 500'000, i);
    idle_.Add(HostWait{.begin_ns = i, .end_ns = i + 10, .tid = 1, .path = i});
  }
  uint64_t count = 0;
  for (const Charged& sum : Sums()) count += sum.count;
  EXPECT_EQ(count, 49U);
  EXPECT_EQ(idle_.size(), kIdleCauses + 2);
  EXPECT_EQ(idle_.sum(static_cast<size_t>(IdleCause::kQueue)).count, 47U);
  ASSERT_EQ(idle_.waits().size(), 3U);
  EXPECT_EQ(idle_.waits()[0].time.count, 48U);
  EXPECT_EQ(idle_.waits()[1].path, 1U);
}

TEST_F(IdleTimeTest, WaitsAreSummedByPath) {
  for (int i = 0; i < 3; ++i) {
    idle_.Add(HostWait{.begin_ns = 100, .end_ns = 200 + 100 * i, .tid = 1, .path = 5});
  }
  ASSERT_EQ(idle_.waits().size(), 2U);
  EXPECT_EQ(idle_.waits()[1].path, 5U);
  EXPECT_EQ(idle_.waits()[1].time.count, 3U);
  EXPECT_EQ(idle_.waits()[1].time.total_ns, 600U);
  EXPECT_EQ(idle_.waits()[1].time.max_ns, 300U);
}

TEST_F(IdleTimeTest, ClearsToNothing) {
  Work(1, 1 * kMs, 2 * kMs, 1);
  Work(1, 3 * kMs, 4 * kMs, 1);
  idle_.Finish();
  idle_.Clear();
  EXPECT_THAT(Sums(), IsEmpty());
  EXPECT_THAT(idle_.devices(), IsEmpty());
}

}  // namespace
}  // namespace pystrobe::gpu
