// SPDX-License-Identifier: Apache-2.0
//
// Every nanosecond and every flag of a thread that runs and sleeps, case by case.
#include "tests/cpp/support/thread_ledger_fixture.h"

namespace pystrobe::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ThreadLedgerTest, TheFirstTickHasNoLengthAndTheSecondAllSinceTheStart) {
  ThreadLedger ledger = Begin({5 * kMs, 0, 1});
  ledger.Take({TickOf(1), Running(5 * kMs + 10), kWork, kSampleGil});
  ledger.Take({TickOf(2), Running(6 * kMs), kWork, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1, 1, 10, kWork, 1, kSampleGil | kSampleOnCpu},
                          Row{1'000'000, 999'999, kMs - 10, kWork, 1, kSampleGil | kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, AThreadThatRunsHasOneSampleATick) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(2 * kMs), kWork, 0});
  ledger.Take({TickOf(4), Running(2 * kMs + 7), kOther, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, kMs, kWork, 1, kSampleOnCpu},
                                     Row{3'000'000, kMs, 7, kOther, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, NothingIsPendingOfAThreadThatRuns) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(2 * kMs), kWork, 0});
  Yielded();
  ledger.Flush();
  ledger.Finish(TickOf(3), true);
  EXPECT_THAT(Yielded(), IsEmpty());
}

// Its looks come to nothing for a while: the one that does not has all its time.
TEST_F(ThreadLedgerTest, AThreadThatRunsIsNotIdleForWantOfLooks) {
  ThreadLedger ledger = BeginRunning();
  EXPECT_FALSE(ledger.SeeStill(TickOf(3), {2 * kMs, 0, 1}));
  EXPECT_FALSE(ledger.SeeStill(TickOf(4), {3 * kMs, 0, 1}));
  ledger.Flush();
  EXPECT_THAT(Yielded(), IsEmpty());
  ledger.Take({TickOf(5), Running(4 * kMs), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'000'000, 3 * kMs, 3 * kMs, kWork, 3, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ASleeperThatWokeIsIdleUntilItWasLastSeenAsleep) {
  ThreadLedger ledger = BeginAsleep();
  EXPECT_TRUE(ledger.SeeStill(TickOf(2), {0, 0, 1}));
  EXPECT_FALSE(ledger.SeeStill(TickOf(4), {2 * kMs, 0, 2}));
  ledger.Flush();
  ledger.Take({TickOf(5), Running(3 * kMs, 2), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle},
                                     Row{4'000'000, 3 * kMs, 3 * kMs, kWork, 3, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, OneThatWaitsForACpuIsNeitherIdleNorOnOne) {
  ThreadLedger ledger = BeginRunning();
  TaskLook waiting = Running(kMs);
  waiting.in_pause = false;
  waiting.stat.run_delay_ns = kMs;
  ledger.Take({TickOf(3), waiting, kWork, 0});
  EXPECT_FALSE(ledger.off_cpu());
  EXPECT_EQ(ledger.last_charge().run_delay_ns, kMs);
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, 0, kWork, 1, 0}));
}

TEST_F(ThreadLedgerTest, RunDelayAddsUp) {
  ThreadLedger ledger = Begin({0, 100, 1});
  TaskLook look = Running(kMs, 2);
  look.stat.run_delay_ns = 130;
  ledger.Take({TickOf(2), look, kWork, 0});
  EXPECT_EQ(ledger.last_charge().run_delay_ns, 30U);
  look = Running(2 * kMs, 3);
  look.stat.run_delay_ns = 135;
  ledger.Take({TickOf(3), look, kWork, 0});
  EXPECT_EQ(ledger.last_charge().run_delay_ns, 5U);
  EXPECT_EQ(ledger.total_run_delay(), 35U);
}

TEST_F(ThreadLedgerTest, ASleepIsOneEntryUntilTheThreadWakes) {
  ThreadLedger ledger = BeginAsleep();
  for (uint64_t tick = 2; tick <= 9; ++tick) {
    EXPECT_TRUE(ledger.SeeStill(TickOf(tick), {0, 0, 1}));
  }
  EXPECT_FALSE(ledger.SeeStill(TickOf(10), {400, 0, 2}));
  EXPECT_THAT(samples_, IsEmpty());
  ledger.Take({TickOf(10), Running(400, 2), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{8'000'000, 8'000'000, 0, kNap, 9, kSampleIdle},
                                     Row{9'000'000, kMs, 400, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, WhoWaitsForACpuIsNotIdle) {
  ThreadLedger ledger = BeginAsleep();
  TaskLook look = Running(300, 2);
  look.stat.run_delay_ns = 2'500'000;
  ledger.Take({TickOf(5), look, kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'499'700, 1'499'700, 0, kNap, 4, kSampleIdle},
                                     Row{3'000'000, 1'500'300, 0, kNap, 0, 0},
                                     Row{4'000'000, kMs, 300, kWork, 1, kSampleOnCpu}));
}

// As under a CPU quota: preempted with the lock, it keeps that for as long as it waits.
TEST_F(ThreadLedgerTest, WhoWaitsForACpuWithTheLockHasIt) {
  ThreadLedger ledger = Begin();
  ledger.Take({TickOf(1), Running(0), kWork, kSampleGil});
  EXPECT_TRUE(ledger.off_cpu());
  for (uint64_t tick = 2; tick <= 9; ++tick) EXPECT_TRUE(ledger.SeeStill(TickOf(tick), {0, 0, 1}));
  TaskLook look = Running(400'000, 2);
  look.stat.run_delay_ns = 8 * kMs;
  ledger.Take({TickOf(10), look, kOther, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{600'000, 600'000, 0, kWork, 0, kSampleGil | kSampleIdle},
                          Row{8'000'000, 7'400'000, 0, kWork, 9, kSampleGil},
                          Row{9'000'000, kMs, 400'000, kOther, 1, kSampleGil | kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ASleepIsYieldedPieceByPiece) {
  ThreadLedger ledger = BeginAsleep();
  ledger.SeeStill(TickOf(4), {0, 0, 1});
  ledger.Flush();
  ledger.Flush();
  ledger.SeeStill(TickOf(6), {0, 0, 1});
  ledger.Finish(TickOf(8), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{3'000'000, 3 * kMs, 0, kNap, 4, kSampleIdle},
                                     Row{7'000'000, 4 * kMs, 0, kNap, 4, kSampleIdle}));
}

TEST_F(ThreadLedgerTest, ASleeperKeepsItsLockAndItsMarks) {
  ThreadLedger ledger = Begin();
  ledger.Take({TickOf(1), Asleep(0), kNap, kSampleGil});
  ledger.SeeStill(TickOf(3), {0, 0, 1});
  ledger.Flush();
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{2'000'000, 2 * kMs, 0, kNap, 3, kSampleIdle | kSampleGil}));
}

TEST_F(ThreadLedgerTest, ASleeperHasTheLockAsLongAsItIsKnownNotToHaveRun) {
  ThreadLedger ledger = Begin();
  ledger.Take({TickOf(1), Asleep(0), kNap, kSampleGil});
  ledger.SeeStill(TickOf(3), {0, 0, 1});
  EXPECT_FALSE(ledger.SeeStill(TickOf(6), {100, 0, 2}));
  ledger.Take({TickOf(6), Running(100, 2), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, 2 * kMs, 0, kNap, 3, kSampleIdle | kSampleGil},
                                     Row{4'000'000, 2 * kMs, 0, kNap, 2, kSampleIdle},
                                     Row{5'000'000, kMs, 100, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ASleeperThatEndedHadTheLockUntilItWasSeenLast) {
  ThreadLedger ledger = Begin();
  ledger.Take({TickOf(1), Asleep(0), kNap, kSampleGil});
  ledger.SeeStill(TickOf(2), {0, 0, 1});
  ledger.Finish(TickOf(4), false);
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle | kSampleGil},
                                     Row{2'000'000, kMs, 0, kNap, 1, kSampleIdle}));
}

// Others had it in the ticks that did not look at this one.
TEST_F(ThreadLedgerTest, ARunnerWithTheLockHasItInNoTickThatDidNotLook) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(2 * kMs), kWork, kSampleGil});
  Yielded();
  ledger.Take({TickOf(6), Running(2 * kMs + 100), kOther, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{4'000'000, 2 * kMs, 0, kWork, 2, 0},
                          Row{5'000'000, kMs, 100, kOther, 1, kSampleOnCpu | kSampleGil}));
}

// It could not be proved to be what it was: it is looked at again, and each look has its sample.
TEST_F(ThreadLedgerTest, ASleeperWithoutProofIsNotTakenForOffCpu) {
  for (const uint8_t flag : {uint8_t{kSampleMarked}, uint8_t{kSampleIncomplete}}) {
    ThreadLedger ledger = Begin();
    ledger.Take({TickOf(1), Asleep(0), kNap, flag});
    EXPECT_FALSE(ledger.off_cpu());
    EXPECT_FALSE(ledger.SeeStill(TickOf(2), {0, 0, 1}));
    EXPECT_THAT(Yielded(), ElementsAre(Row{1, 1, 0, kNap, 1, flag}));
  }
}

// What it ran before that, nobody saw.
TEST_F(ThreadLedgerTest, SeenAsleepAfterARunItHasTheWholeIntervalButNoCpuTime) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Asleep(kMs + 300'000), kNap, 0});
  EXPECT_FALSE(ledger.off_cpu());
  ledger.Take({TickOf(4), Asleep(kMs + 300'000), kNap, 0});
  EXPECT_TRUE(ledger.off_cpu());
  ledger.Take({TickOf(5), Running(kMs + 300'200, 2), kOther, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, 0, kNap, 1, 0},
                                     Row{3'000'000, kMs, 0, kNap, 1, kSampleIdle},
                                     Row{4'000'000, kMs, 300'200, kOther, 1, kSampleOnCpu}));
}

// Found asleep half of the time that it runs, found running half of the time that it sleeps.
TEST_F(ThreadLedgerTest, ALookHasNoMoreCpuTimeThanItStandsFor) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Asleep(kMs + 900'000, 2), kNap, 0});
  ledger.Take({TickOf(4), Running(kMs + 1'500'000, 3), kWork, 0});
  ledger.Take({TickOf(5), Running(kMs + 1'600'000, 4), kOther, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, 0, kNap, 1, 0},
                                     Row{3'000'000, kMs, kMs, kWork, 1, kSampleOnCpu},
                                     Row{4'000'000, kMs, 600'000, kOther, 1, kSampleOnCpu}));
}

// It hides from looks: each that finds it running has its part of what the others did not see.
TEST_F(ThreadLedgerTest, CpuTimeOfManyLooksDoesNotWaitForTheEnd) {
  ThreadLedger ledger = BeginRunning();
  for (uint64_t tick = 3; tick <= 257; ++tick) {
    ledger.Take({TickOf(tick), Asleep((tick - 1) * kMs, tick), kNap, 0});
  }
  Yielded();
  ledger.Take({TickOf(258), Running(257 * kMs, 258), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{257'000'000, kMs, 2 * kMs, kWork, 1, kSampleOnCpu}));
}

// It was woken, and others have the CPU: what it ran before, it ran elsewhere.
TEST_F(ThreadLedgerTest, ALookAtAThreadThatWaitsForACpuHasNoCpuTime) {
  ThreadLedger ledger = BeginAsleep();
  TaskLook waits = Running(200'000, 2);
  waits.on_cpu = OnCpu::kNo;
  ledger.Take({TickOf(2), waits, kNap, 0});
  ledger.Take({TickOf(3), Running(300'000, 3), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, 0},
                                     Row{2'000'000, kMs, 300'000, kWork, 1, kSampleOnCpu}));
}

// Nobody held it still. Without the lock it may run or not; with it, it runs.
TEST_F(ThreadLedgerTest, ALookThatCannotTellHasCpuTimeWithTheLockOnly) {
  ThreadLedger ledger = BeginAsleep();
  TaskLook look = Running(200'000, 2);
  look.in_pause = false;
  look.on_cpu = OnCpu::kUnknown;
  ledger.Take({TickOf(2), look, kNap, 0});
  look.stat = {300'000, 0, 3};
  ledger.Take({TickOf(3), look, kWork, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, 0},
                          Row{2'000'000, kMs, 300'000, kWork, 1, kSampleOnCpu | kSampleGil}));
}

// A worker in C code is never seen with the lock, or held.
TEST_F(ThreadLedgerTest, LooksThatCannotTellHaveWhatOthersDoNotNeed) {
  ThreadLedger ledger = BeginAsleep();
  for (uint64_t tick = 2; tick <= 18; ++tick) {
    const TaskLook look{.stat = {(tick - 1) * kMs, 0, 2}};
    ledger.Take({TickOf(tick), look, tick == 18 ? kOther : kWork, 0});
  }
  ledger.Finish(TickOf(18), true);
  const std::vector<Row> rows = Yielded();
  ASSERT_EQ(rows.size(), 19U);
  EXPECT_EQ(rows[15], (Row{16'000'000, kMs, 0, kWork, 1, 0}));
  EXPECT_EQ(rows[16], (Row{17'000'000, kMs, kMs, kOther, 1, kSampleOnCpu}));
  EXPECT_EQ(rows[17], (Row{17'000'001, 1, 16 * kMs * 16 / 17 + 1, kWork, 0, kSampleOnCpu}));
  EXPECT_EQ(rows[18].stack, kOther);
}

// A worker in C code that is seen with the lock once, and that look had its time.
TEST_F(ThreadLedgerTest, WhatIsLeftIsDueToLooksThatCouldNotTell) {
  ThreadLedger ledger = BeginAsleep();
  for (uint64_t tick = 2; tick <= 101; ++tick) {
    const TaskLook look{.stat = {(tick - 1) * kMs, 0, 2}};
    const bool locked = tick == 90;
    const uint8_t flags = locked ? kSampleGil : 0;
    ledger.Take({TickOf(tick), look, locked ? kOther : kWork, flags});
  }
  Yielded();
  ledger.Finish(TickOf(101), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{100'000'001, 1, 16 * kMs, kWork, 0, kSampleOnCpu}));
}

// Mostly seen with the lock and running: a look that could not tell found it waiting.
TEST_F(ThreadLedgerTest, NothingIsLeftForLooksThatCannotTellWhereOthersHadAll) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(kMs + 200'000), kWork, 0});
  ledger.Take({TickOf(4), Asleep(kMs + 500'000, 2), kNap, 0});
  ledger.Take({TickOf(5), {.stat = {kMs + 600'000, 0, 3}}, kOther, 0});
  Yielded();
  ledger.Finish(TickOf(5), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'000'001, 1, 400'000, kWork, 0, kSampleOnCpu}));
}

// With the lock and held, but with no time charged for a part of it: it waits by now, for others
// had its CPU.
TEST_F(ThreadLedgerTest, AHolderThatLostItsCpuHasNoCpuTime) {
  ThreadLedger ledger = BeginRunning();
  TaskLook look = Running(kMs + 400'000, 2);
  look.on_cpu = OnCpu::kUnknown;
  ledger.Take({TickOf(3), look, kOther, kSampleGil});
  look = Running(2 * kMs + 400'000, 2);
  ledger.Take({TickOf(4), look, kWork, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{2'000'000, kMs, 0, kOther, 1, kSampleGil},
                          Row{3'000'000, kMs, kMs, kWork, 1, kSampleGil | kSampleOnCpu}));
}

// Several ticks without a look, as others had them: had it had the lock, they would have been its.
TEST_F(ThreadLedgerTest, TicksThatLookedAtOthersAreOfAStackWithoutTheLock) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(2 * kMs), kNap, 0});
  ledger.Take({TickOf(4), Running(3 * kMs), kWork, kSampleGil});
  ledger.Take({TickOf(7), Running(3 * kMs + 100, 2), kWork, kSampleGil});
  ledger.Take({TickOf(10), Running(3 * kMs + 200, 3), kOther, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, kMs, kNap, 1, kSampleOnCpu},
                                     Row{3'000'000, kMs, kMs, kWork, 1, kSampleOnCpu | kSampleGil},
                                     Row{5'000'000, 2 * kMs, 0, kNap, 2, 0},
                                     Row{6'000'000, kMs, 100, kWork, 1, kSampleOnCpu | kSampleGil},
                                     Row{8'000'000, 2 * kMs, 0, kOther, 2, 0},
                                     Row{9'000'000, kMs, 100, kOther, 1, kSampleOnCpu}));
}

// Several ticks without a look; it ran in some of them, waiting for a CPU.
TEST_F(ThreadLedgerTest, TicksThatLookedAtOthersAreOfTheStackSeenBefore) {
  ThreadLedger ledger = BeginRunning();
  TaskLook look = Running(kMs + 400'000, 4);
  look.stat.run_delay_ns = 2 * kMs;
  ledger.Take({TickOf(7), look, kOther, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{3'600'000, 2'600'000, 0, kWork, 4, kSampleIdle},
                          Row{5'000'000, 1'400'000, 0, kWork, 0, 0},
                          Row{6'000'000, kMs, 400'000, kOther, 1, kSampleOnCpu | kSampleGil}));
}

TEST_F(ThreadLedgerTest, BurstsBetweenLooksGoToTheNextStackSeenRunning) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Take({TickOf(2), Asleep(100, 2), kNap, 0});
  ledger.Take({TickOf(3), Asleep(250, 3), kNap, 0});
  ledger.Take({TickOf(4), Running(260, 4), kOther, 0});
  ledger.Take({TickOf(5), Running(1000, 4), kOther, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, 0}, Row{2'000'000, kMs, 0, kNap, 1, 0},
                          Row{3'000'000, kMs, 260, kOther, 1, kSampleOnCpu},
                          Row{4'000'000, kMs, 740, kOther, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, BurstsThatNoLookFollowsGoToTheStackSeenRunningLast) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Asleep(kMs, 1), kNap, 0});
  ledger.Take({TickOf(4), Asleep(kMs + 80, 2), kNap, 0});
  Yielded();
  ledger.Finish(TickOf(4), true);
  ledger.Finish(TickOf(4), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{3'000'001, 1, 80, kWork, 0, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, BurstsOfAThreadNeverSeenRunningAreUnseen) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Take({TickOf(2), Asleep(100, 2), kNap, 0});
  Yielded();
  ledger.Finish(TickOf(2), true);
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'001, 1, 100, kEmptyStack, 0, kSampleOnCpu | kSampleUnseen}));
}

// Nobody looked for six ticks; the last 2.5 of them it ran, as its CPU time says.
TEST_F(ThreadLedgerTest, ARunOfSeveralTicksBeginsWhereItsCpuTimeSays) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Take({TickOf(8), Running(2'500'000, 2), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'500'000, 4'500'000, 0, kNap, 7, kSampleIdle},
                                     Row{7'000'000, 2'500'000, 2'500'000, kWork, 1, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, TheLockIsKnownOfTheLastTickOnly) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Take({TickOf(8), Running(2'500'000, 2), kWork, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{4'500'000, 4'500'000, 0, kNap, 7, kSampleIdle},
                          Row{6'000'000, 1'500'000, 1'500'000, kWork, 0, kSampleOnCpu},
                          Row{7'000'000, kMs, kMs, kWork, 1, kSampleOnCpu | kSampleGil}));
}

// The look at a tick came to nothing, and one a little later was made in its place.
TEST_F(ThreadLedgerTest, ASleepGoesOnWhereALookCameToNothing) {
  ThreadLedger ledger = BeginAsleep();
  ledger.SeeStill(TickOf(2), {0, 0, 1});
  ledger.Flush();
  Tick tick = TickOf(3);
  tick.previous = tick.previous + microseconds(200);
  ledger.Take({tick, Running(300, 2), kWork, kSampleGil});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle},
                          Row{1'200'000, 200'000, 0, kNap, 0, kSampleIdle},
                          Row{2'000'000, 800'000, 300, kWork, 1, kSampleOnCpu | kSampleGil}));
}

TEST_F(ThreadLedgerTest, ARunLongerThanTheTimeLeavesNoIdleEntry) {
  ThreadLedger ledger = BeginAsleep();
  ledger.Take({TickOf(4), Running(3 * kMs + 40, 2), kWork, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{3'000'000, 3 * kMs, 3 * kMs, kWork, 4, kSampleOnCpu}));
}

// A few ticks without a look, and found asleep.
TEST_F(ThreadLedgerTest, ARunThatEndedUnwatchedWaitsForAStackSeenRunning) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(6), Asleep(kMs + 200, 2), kNap, 0});
  ledger.Finish(TickOf(6), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{4'000'000, 3 * kMs, 0, kWork, 3, kSampleIdle},
                                     Row{5'000'000, kMs, 0, kNap, 1, 0},
                                     Row{5'000'001, 1, 200, kWork, 0, kSampleOnCpu}));
}

TEST_F(ThreadLedgerTest, ALateTickIsMarkedButNotTheSleepBeforeIt) {
  ThreadLedger ledger = BeginAsleep();
  Tick late = TickOf(3);
  late.due_by = late.time - microseconds(1);
  ledger.Take({late, Running(kMs / 2, 2), kWork, 0});
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle},
                          Row{2'000'000, kMs, kMs / 2, kWork, 1, kSampleOnCpu | kSampleLate}));
}

// A kernel that counts in ticks of 10 ms: each comes to the stacks seen awake about then.
TEST_F(ThreadLedgerTest, WithoutAnExactClockSumsAreRightAllTheSame) {
  ThreadLedger ledger = Begin({0, 0, 0});
  const TaskLook before{.stat = {0, 0, 0}}, after{.stat = {10 * kMs, 0, 0}};
  ledger.Take({TickOf(1), before, kWork, 0});
  ledger.Take({TickOf(2), before, kWork, 0});
  ledger.Take({TickOf(3), after, kWork, 0});
  ledger.Take({TickOf(4), after, kOther, 0});
  ledger.Finish(TickOf(4), true);
  EXPECT_THAT(Yielded(),
              ElementsAre(Row{1, 1, 0, kWork, 1, 0}, Row{1'000'000, kMs - 1, 0, kWork, 1, 0},
                          Row{2'000'000, kMs, kMs, kWork, 1, kSampleOnCpu},
                          Row{3'000'000, kMs, kMs, kOther, 1, kSampleOnCpu},
                          Row{3'000'001, 1, 5'333'333, kWork, 0, kSampleOnCpu},
                          Row{3'000'002, 1, 2'666'667, kOther, 0, kSampleOnCpu}));
}

// Asleep for all we see, it is looked at in each tick.
TEST_F(ThreadLedgerTest, WithoutAnExactClockASleepIsAnEntryATick) {
  ThreadLedger ledger = Begin({0, 0, 0});
  const TaskLook asleep{.stat = {0, 0, 0}, .awake = false};
  for (uint64_t tick = 1; tick <= 3; ++tick) ledger.Take({TickOf(tick), asleep, kNap, 0});
  ledger.Finish(TickOf(3), true);
  EXPECT_THAT(Yielded(), ElementsAre(Row{1'000'000, kMs, 0, kNap, 2, kSampleIdle},
                                     Row{2'000'000, kMs, 0, kNap, 1, kSampleIdle}));
}

// Our own coming may have woken it: only one that had no time to sleep was awake before.
TEST_F(ThreadLedgerTest, AnUnsureLookIsOfAThreadAwakeOnlyIfItHadNoTimeToSleep) {
  TaskLook look = Running(2 * kMs - 61'000, 2);
  look.unsure = true;
  ThreadLedger slept = BeginRunning();
  slept.Take({TickOf(3), look, kNap, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, 0, kNap, 1, 0}));
  ThreadLedger went_on = BeginRunning();
  look.stat.run_delay_ns = 1000;
  went_on.Take({TickOf(3), look, kOther, 0});
  EXPECT_THAT(Yielded(), ElementsAre(Row{2'000'000, kMs, 939'000, kOther, 1, kSampleOnCpu}));
}

// As where C functions are found later.
TEST_F(ThreadLedgerTest, StacksThatAreInNoSampleYetAreReplaced) {
  constexpr StackId kStandIn{1000}, kUnlockedStandIn{1001};
  ThreadLedger ledger = Begin();
  TaskLook look = Running(0);
  ledger.Take({TickOf(1), look, kUnlockedStandIn, 0});
  ledger.Take({TickOf(2), Running(kMs), kStandIn, kSampleGil});
  samples_.clear();
  ledger.Replace([&](StackId stack) {
    return stack == kStandIn ? kWork : stack == kUnlockedStandIn ? kOther : stack;
  });
  ledger.Take({TickOf(9), Asleep(2 * kMs, 2), kNap, 0});
  ledger.Finish(TickOf(12), true);
  EXPECT_FALSE(samples_.empty());
  for (const Sample& sample : samples_) EXPECT_LT(ToIndex(sample.stack), 1000U);
}

TEST_F(ThreadLedgerTest, OnlyCpuTimeIsInTheKernel) {
  ThreadLedger ledger = BeginRunning();
  ledger.Take({TickOf(3), Running(2 * kMs), kWork, kSampleKernel});
  ledger.Take({TickOf(4), Asleep(2 * kMs), kNap, kSampleKernel});
  ledger.Finish(TickOf(5), true);
  uint64_t in_kernel = 0;
  for (const Sample& sample : samples_) {
    if ((sample.flags & kSampleKernel) == 0) continue;
    EXPECT_GT(sample.cpu_ns, 0U);
    in_kernel += sample.cpu_ns;
  }
  EXPECT_EQ(in_kernel, kMs);
}

// At the end too, where it is spread over the last looks.
TEST_F(ThreadLedgerTest, WhatIsLeftIsInTheKernelAsItsLooksWere) {
  ThreadLedger ledger = Begin();
  TaskLook doubtful = Running(0);
  doubtful.in_pause = false;
  doubtful.on_cpu = OnCpu::kUnknown;
  for (uint64_t tick = 1; tick <= 10; ++tick) {
    doubtful.stat.cpu_ns = (tick - 1) * kMs;
    ledger.Take({TickOf(tick), doubtful, kWork, kSampleKernel});
  }
  ledger.Finish(TickOf(10), true);
  uint64_t cpu = 0;
  for (const Sample& sample : samples_) {
    const bool in_kernel = (sample.flags & kSampleKernel) != 0;
    EXPECT_EQ(in_kernel, sample.cpu_ns > 0);
    cpu += sample.cpu_ns;
  }
  EXPECT_EQ(cpu, 9 * kMs);
}

}  // namespace
}  // namespace pystrobe::remote
