// SPDX-License-Identifier: Apache-2.0
//
// One thread's ledger, and what is expected of the samples it yields: one tick a millisecond.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include "sampler/remote/thread_ledger.h"

namespace pystrobe::remote {

inline constexpr Nanoseconds kStart = std::chrono::seconds(1000);
inline constexpr uint64_t kMs = 1'000'000;
inline constexpr ThreadIndex kThread{3};
inline constexpr StackId kWork{10}, kOther{20}, kNap{30};

/// What a test expects of a sample; times in nanoseconds.
struct Row {
  int64_t end = 0;
  uint64_t wall = 0, cpu = 0;
  StackId stack = kEmptyStack;
  uint32_t count = 0;
  int flags = 0;

  friend bool operator==(const Row&, const Row&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Row& row) {
    return out << "{end " << row.end << ", wall " << row.wall << ", cpu " << row.cpu << ", stack "
               << ToIndex(row.stack) << ", count " << row.count << ", flags " << row.flags << "}";
  }
};

inline TaskLook Running(uint64_t cpu_ns, uint64_t switches = 1) {
  return {.stat = {cpu_ns, 0, switches}, .awake = true, .in_pause = true, .on_cpu = OnCpu::kYes};
}

inline TaskLook Asleep(uint64_t cpu_ns, uint64_t switches = 1) {
  return {.stat = {cpu_ns, 0, switches}, .awake = false};
}

/// One a millisecond; the first is the start of the recording.
inline Tick TickOf(uint64_t number) {
  const Nanoseconds time = kStart + std::chrono::milliseconds(number - 1);
  const Nanoseconds previous = number > 1 ? time - std::chrono::milliseconds(1) : time;
  return {.number = number, .time = time, .previous = previous};
}

class ThreadLedgerTest : public ::testing::Test {
 protected:
  /// A thread found at a tick, charged so much before.
  ThreadLedger Open(const Tick& now, const std::optional<SchedStat>& stat = SchedStat{0, 0, 1}) {
    return {Timeline(kThread, kStart, samples_), now, stat,
            KernelAccount(stat.value_or(SchedStat{}))};
  }

  /// A thread there from the start on.
  ThreadLedger Begin(const SchedStat& stat = {0, 0, 1}) {
    ThreadLedger ledger = Open(TickOf(1), stat);
    ledger.BeginAt(kStart, stat);
    return ledger;
  }

  /// The same, seen running and charged a millisecond each, until the second tick.
  ThreadLedger BeginRunning() {
    ThreadLedger ledger = Begin();
    ledger.Take({TickOf(1), Running(0), kWork, 0});
    ledger.Take({TickOf(2), Running(kMs), kWork, 0});
    samples_.clear();
    return ledger;
  }

  /// The same, seen asleep at the first tick.
  ThreadLedger BeginAsleep() {
    ThreadLedger ledger = Begin();
    ledger.Take({TickOf(1), Asleep(0), kNap, 0});
    EXPECT_TRUE(ledger.off_cpu());
    EXPECT_THAT(samples_, ::testing::IsEmpty());
    return ledger;
  }

  std::vector<Row> Yielded() {
    std::vector<Row> rows;
    for (const Sample& sample : samples_) {
      EXPECT_EQ(sample.thread, kThread);
      rows.push_back({sample.time_ns, sample.wall_ns, sample.cpu_ns, sample.stack, sample.count,
                      sample.flags});
    }
    samples_.clear();
    return rows;
  }

  std::vector<Sample> samples_;
};

}  // namespace pystrobe::remote
