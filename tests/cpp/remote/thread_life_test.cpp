// SPDX-License-Identifier: Apache-2.0
//
// How time is accounted for where a thread was born or ended, or where nobody looked.
#include "tests/cpp/support/thread_ledger_fixture.h"

namespace pystrobe::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KernelAccount, GivesOutEachNanosecondOnce) {
  KernelAccount account(SchedStat{100, 10, 1});
  const auto first = account.Settle({150, 30, 2});
  EXPECT_EQ(first.cpu_ns, 50U);
  EXPECT_EQ(first.run_delay_ns, 20U);
  const auto again = account.Settle({150, 30, 2});
  EXPECT_EQ(again.cpu_ns, 0U);
  EXPECT_EQ(again.run_delay_ns, 0U);
}

TEST(KernelAccount, AnOlderLookGetsNothingAndSetsNothingBack) {
  KernelAccount account(SchedStat{100, 10, 1});
  account.Settle({200, 50, 3});
  const auto older = account.Settle({150, 30, 2});
  EXPECT_EQ(older.cpu_ns, 0U);
  EXPECT_EQ(older.run_delay_ns, 0U);
  const auto newer = account.Settle({210, 55, 4});
  EXPECT_EQ(newer.cpu_ns, 10U);
  EXPECT_EQ(newer.run_delay_ns, 5U);
}

TEST(KernelAccount, AnOlderLookWithAsMuchCpuTimeSetsNoDelayBack) {
  KernelAccount account(SchedStat{100, 10, 1});
  EXPECT_EQ(account.Settle({100, 50, 2}).run_delay_ns, 40U);
  EXPECT_EQ(account.Settle({100, 30, 1}).run_delay_ns, 0U);
  EXPECT_EQ(account.Settle({100, 50, 2}).run_delay_ns, 0U);
}

TEST(KernelAccount, ANewThreadIsChargedWhatItCanHaveUsed) {
  const SchedStat used{2 * kMs, 5, 1};
  EXPECT_EQ(KernelAccount::OfNewThread(used, milliseconds(2)).Settle(used).cpu_ns, 2 * kMs);
  EXPECT_EQ(KernelAccount::OfNewThread(used, milliseconds(1)).Settle(used).cpu_ns, 0U);
  EXPECT_EQ(KernelAccount::OfNewThread(used, milliseconds(2)).Settle(used).run_delay_ns, 0U);
}

TEST(Timeline, EntriesLieEndToEndAndHaveALength) {
  std::vector<Sample> samples;
  Timeline timeline(kThread, kStart, samples);
  timeline.SetEnd({4, kStart + microseconds(5)});
  timeline.Add({6, kStart + microseconds(7)}, 9, kWork, kSampleOnCpu);
  timeline.Add({7, kStart + microseconds(7)}, 0, kNap, 0);
  timeline.Add({8, kStart + microseconds(7)}, 0, kNap, 0);
  EXPECT_EQ(timeline.RoomUntil(kStart + microseconds(7)), 0U);
  EXPECT_EQ(timeline.RoomUntil(kStart + microseconds(8)), 998U);
  timeline.Add({8, kStart + microseconds(8)}, 0, kWork, kSampleLate);
  const std::vector<Sample> expected = {
      {7000, 2000, 9, kThread, kWork, 2, kSampleOnCpu},
      {7001, 1, 0, kThread, kNap, 1, 0},
      {7002, 1, 0, kThread, kNap, 1, 0},
      {8000, 998, 0, kThread, kWork, 0, kSampleLate},
  };
  EXPECT_EQ(samples, expected);
}

TEST(Lifetime, EndsHalfWayBetweenTheLastLookAndTheFirstMiss) {
  Lifetime life;
  life.See({10, kStart});
  EXPECT_FALSE(life.gone());
  EXPECT_EQ(life.End().time, kStart);
  life.Miss({14, kStart + milliseconds(5)});
  life.Miss({20, kStart + milliseconds(50)});
  EXPECT_TRUE(life.gone());
  EXPECT_EQ(life.End().tick, 12U);
  EXPECT_EQ(life.End().time, kStart + microseconds(2500));
}

// The sampler slept for 999 ms; the next look stands for 100 of them.
Tick AfterGap() {
  Tick tick = TickOf(3);
  tick.time = kStart + seconds(1);
  tick.longest = milliseconds(100);
  return tick;
}

TEST_F(ThreadLedgerTest, TimeInWhichTheSamplerWasStoppedGoesToNoStack) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({AfterGap(), Running(1000 * kMs), kOther, kSampleGil});
  EXPECT_THAT(
      Yielded(),
      ElementsAre(
          Row{900'000'000, 899 * kMs, 899 * kMs, kEmptyStack, 0, kSampleUnseen | kSampleOnCpu},
          Row{1'000'000'000, 100 * kMs, 100 * kMs, kOther, 1, kSampleOnCpu | kSampleGil}));
}

TEST_F(ThreadLedgerTest, AfterAGapARunnerHasNoMoreCpuTimeThanTheTimeItStandsFor) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({AfterGap(), Running(31 * kMs, 2), kOther, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{900'000'000, 899 * kMs, 0, kEmptyStack, 0, kSampleUnseen},
                          Row{1'000'000'000, 100 * kMs, 30 * kMs, kOther, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, WhatASleeperRanInAGapWasInTheGap) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({AfterGap(), Asleep(31 * kMs, 2), kNap, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{900'000'000, 899 * kMs, 30 * kMs, kEmptyStack, 0,
                                         kSampleUnseen | kSampleOnCpu},
                                     Row{1'000'000'000, 100 * kMs, 0, kNap, 1, 0}));
}

TEST_F(ThreadLedgerTest, ASleeperThatDidNotRunInAGapIsKnownNotTo) {
  ThreadLedger ledger = BeginAsleep();
  EXPECT_TRUE(ledger.SeeStill(AfterGap(), {0, 0, 1}));
  ledger.Flush();
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000'000, 1000 * kMs, 0, kNap, 3, kSampleIdle}));
}

TEST_F(ThreadLedgerTest, BeforeAGapASleeperIsIdle) {
  ThreadLedger ledger = BeginAsleep();
  ledger.SeeStill(TickOf(2), {0, 0, 1});
  ledger.Take({AfterGap(), Running(200 * kMs, 2), kWork, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle},
                          Row{900'000'000, 899 * kMs, 100 * kMs, kEmptyStack, 0,
                              kSampleUnseen | kSampleOnCpu},
                          Row{1'000'000'000, 100 * kMs, 100 * kMs, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, AThreadIsBornHalfWayBetweenTwoTicks) {
  ThreadLedger ledger = Open(TickOf(5), SchedStat{0, 0, 1});
  ledger.Take({TickOf(6), Running(1'200'000), kWork, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{3'800'000, 300'000, 0, kEmptyStack, 1, kSampleIdle | kSampleUnseen},
                          Row{5'000'000, 1'200'000, 1'200'000, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ANewThreadMayBeLookedAtInItsFirstTick) {
  ThreadLedger ledger = Open(TickOf(5), SchedStat{0, 0, 1});
  ledger.Take({TickOf(5), Running(1000), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'000'000, 500'000, 1000, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, TimeBeforeTheFirstStackIsUnseen) {
  ThreadLedger ledger = Open(TickOf(5), SchedStat{0, 0, 1});
  ledger.SeeAlive(TickOf(7));
  ledger.Flush();
  ledger.Take({TickOf(10), Running(300, 2), kWork, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{6'000'000, 2'500'000, 0, kEmptyStack, 3, kSampleIdle | kSampleUnseen},
                          Row{8'000'000, 2'000'000, 0, kEmptyStack, 2, kSampleIdle | kSampleUnseen},
                          Row{9'000'000, kMs, 300, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ANewThreadFoundAsleepHasThatStackSinceTheTickBefore) {
  const SchedStat used{2 * kMs, 0, 3};
  ThreadLedger ledger(Timeline(kThread, kStart, samples_), TickOf(5), used,
                      KernelAccount(SchedStat{}));
  ledger.Take({TickOf(10), Asleep(2 * kMs, 3), kNap, kSampleGil});
  ledger.Finish(TickOf(10), true);
  EXPECT_THAT(
      Yielded(),
      ElementsAre(Row{8'000'000, 4'500'000, 0, kEmptyStack, 5, kSampleIdle | kSampleUnseen},
                  Row{9'000'000, kMs, 0, kNap, 1, kSampleIdle | kSampleGil},
                  Row{9'000'001, 1, 2 * kMs, kEmptyStack, 0, kSampleOnCpu | kSampleUnseen}));
}

TEST_F(ThreadLedgerTest, AThreadThatEndedWasIdleHalfWayToTheMiss) {
  ThreadLedger ledger = BeginAsleep();
  ledger.SeeStill(TickOf(3), {0, 0, 1});
  ledger.Miss(TickOf(7));
  EXPECT_TRUE(ledger.gone());
  ledger.Finish(TickOf(20), false);
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'000'000, 4 * kMs, 0, kNap, 5, kSampleIdle}));
}

TEST_F(ThreadLedgerTest, AThreadMissedAtTheNextTickLivedHalfATickMore) {
  ThreadLedger ledger = BeginRunning();
  ledger.Miss(TickOf(3));
  ledger.Finish(TickOf(9), false);
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'500'000, 500'000, 0, kWork, 0, kSampleIdle}));
}

TEST_F(ThreadLedgerTest, AThreadGoneBeforeTheBeginningYieldsNothing) {
  ThreadLedger ledger = Open(TickOf(3));
  ledger.Miss(TickOf(5));
  ledger.BeginAt(kStart + milliseconds(50), std::nullopt);
  ledger.Finish(TickOf(100), false);
  EXPECT_THAT(Yielded(), IsEmpty());
}

TEST_F(ThreadLedgerTest, AThreadFoundGoneAtTheEndIsMissedThen) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Finish(TickOf(5), false);
  EXPECT_TRUE(ledger.gone());
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, 2 * kMs, 0, kNap, 3, kSampleIdle}));
}

TEST_F(ThreadLedgerTest, AThreadThatIsGoneAlreadyYieldsNothing) {
  ThreadLedger ledger = Open(TickOf(5), std::nullopt);
  EXPECT_TRUE(ledger.gone());
  ledger.Finish(TickOf(5), false);
  EXPECT_THAT(Yielded(), IsEmpty());
}

TEST_F(ThreadLedgerTest, WhatWasBeforeTheBeginningIsNotCounted) {
  ThreadLedger ledger = Open(TickOf(1), SchedStat{100, 7, 1});
  TaskLook look = Running(kMs, 2);
  look.stat.run_delay_ns = 20;
  ledger.Take({TickOf(2), look, kWork, 0});
  ledger.Take({TickOf(3), Asleep(kMs + 500, 3), kNap, 0});
  samples_.clear();
  ledger.BeginAt(kStart + milliseconds(50), SchedStat{2 * kMs, 30, 4});
  EXPECT_EQ(ledger.total_run_delay(), 0U);
  Tick tick{.number = 1, .time = kStart + milliseconds(51), .previous = kStart + milliseconds(50)};
  look = Running(2 * kMs + 5, 5);
  look.stat.run_delay_ns = 33;
  ledger.Take({tick, look, kOther, 0});
  EXPECT_EQ(ledger.total_run_delay(), 3U);
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000, kMs, 5, kOther, 1, kSampleOnCpu}));
}

}  // namespace
}  // namespace pystrobe::remote
