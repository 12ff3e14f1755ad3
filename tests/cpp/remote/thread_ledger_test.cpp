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

}  // namespace
}  // namespace pystrobe::remote
