// SPDX-License-Identifier: Apache-2.0
//
// Which looks have a thread's CPU time, where some are sure that it runs and others cannot tell.
#include "tests/cpp/support/thread_ledger_fixture.h"

namespace pystrobe::remote {
namespace {

using ::testing::ElementsAre;

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
