// SPDX-License-Identifier: Apache-2.0
//
// Threads pinned to one CPU that run copies there, each at a time set. While one runs, the target
// does not: that is the pause.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/cpu_hold.h"
#include "sampler/remote/pacer.h"
#include "sampler/remote/timed_sleep.h"

namespace pystrobe::remote {

/// Runs the jobs it is given one after the other, in their order. A job that went well is fetched
/// when the pacer wakes anyway: no wake-up is spent on telling it. Only one that needs it at once
/// wakes the pacer, away from the CPU to which the target has moved.
///
/// What it does it begins when a timer of its own CPU has woken it, for the moments at which
/// another CPU can wake it are not chance moments of the target (wake.h). So it is told when it is
/// needed next: then it need not be woken for that. Where it must be, it sleeps once more, for a
/// time of a chance length.
///
/// It has two threads, which take turns: as one is woken, the other sleeps until what comes next.
/// So the CPU's clock goes on to that time with the interrupt itself. One thread alone would have
/// it set once more as it goes to sleep, which the target waits for, on a virtual machine for some
/// 3 us.
///
/// Where they may be left waiting for a time slice to end (WaitsForSlices()) they do not: one
/// works, and the other is to wake a moment after it is to begin, which makes the kernel see that
/// the slice is over. Else it would see that at its next tick, or in whatever system call comes
/// first, which would be seen too often. Where the one comes in time it puts the other off, which
/// otherwise would interrupt the target a second time for each look. It does so when its own next
/// time is set, so that the CPU's clock is set once. [all but Main: the pacer]
class Probe {
 public:
  /// That can be waiting at once.
  static constexpr uint32_t kMostJobs = 32;

  /// Starts the threads. Fails when they may not be pinned there, or there may be no more.
  static Result<std::unique_ptr<Probe>> Start(int cpu, Pacer& pacer);
  ~Probe();

  int cpu() const { return cpu_; }
  /// CPU time that the threads have used.
  Nanoseconds Cpu();

  /// Has the probe run `job` at `at` (CLOCK_MONOTONIC), which is not before that of the job before;
  /// where that has passed, soon. The job must stay untouched until it is done. False where there
  /// is no room.
  bool Submit(CopyJob& job, Nanoseconds at);
  /// Runs `job` at `at` on the calling thread while the probe keeps its CPU from others. Not while
  /// busy. False where the probe did not come, or lost the CPU: then there is no result.
  bool RunBeside(CopyJob& job, Nanoseconds at);
  /// For how long it has kept its CPU so since this was asked last, whatever came of it.
  Nanoseconds TakeStay() { return hold_.TakeStay(); }
  /// As TimedSleep::Expect; `then`: what follows that, for the other thread.
  void Expect(Nanoseconds at, Nanoseconds then);
  /// Of the `most` jobs submitted last, takes back those whose time is after `now` and that have
  /// not begun. Returns how many: the last ones.
  uint32_t Withdraw(Nanoseconds now, uint32_t most);
  /// Wakes the probe for jobs whose time has come, should its timer be late.
  void Remind();
  /// Waits until all jobs submitted are done; false after `timeout`: the CPU does not let the probe
  /// run (a real-time program has it). The jobs still belong to the probe then; Wait again.
  bool Wait(Nanoseconds timeout);
  /// Lets the probe go on on any CPU the pacer may use, for good: its jobs end then, and prove
  /// nothing unless that is where the target is.
  void Release();
  /// It was moved to other CPUs and may not go back: its copies there prove nothing.
  bool exiled() const { return exiled_.load(std::memory_order_relaxed); }
  /// Not all jobs submitted are done.
  bool busy() const { return done_.load() != submitted_; }

 private:
  struct Slot {
    /// kFree, kRunning, or the time of the job that waits.
    std::atomic<Nanoseconds> state{kFree};
    CopyJob* job = nullptr;
  };
  struct Worker {
    TimedSleep sleep;
    std::atomic<Nanoseconds> works_at{TimedSleep::kNever};  ///< as it sleeps; kNever: to help
    pid_t tid = 0;
    std::thread thread;
  };
  static constexpr Nanoseconds kFree{-1}, kRunning{-2};
  static constexpr Nanoseconds kAtOnce{1};  ///< not zero, until which nobody sleeps

  Probe(int cpu, Pacer& pacer) : cpu_(cpu), pacer_(pacer) {}
  Result<void> StartWorker(Worker& worker, Worker& other);
  void Main(Worker& self, Worker& other, std::promise<pid_t> started);
  /// True where one had to be woken to be there at `at`.
  bool WakeFor(Nanoseconds at);
  /// When there is something to do, a job, a hold, or what is expected, but for what is at `taken`.
  Nanoseconds DueBut(Nanoseconds taken) const;
  Nanoseconds DueOfJobBut(Nanoseconds taken) const;
  void Work(Nanoseconds now);
  void RunNext(Nanoseconds now);
  bool GoBack();
  Slot& SlotOf(uint32_t number) { return slots_[number % kMostJobs]; }
  const Slot& SlotOf(uint32_t number) const { return slots_[number % kMostJobs]; }

  int cpu_;
  Pacer& pacer_;
  std::array<Slot, kMostJobs> slots_;
  uint32_t submitted_ = 0;
  CpuHold hold_;
  std::atomic<uint32_t> done_{0};
  std::atomic<bool> awaited_{false};  ///< the pacer sleeps on done_
  std::atomic<bool> released_{false};
  std::atomic<bool> exiled_{false};
  std::atomic<bool> stop_{false};
  std::mutex work_;  ///< for who is off the CPU in the middle of a job, as the other one is not
  std::array<Worker, 2> workers_;
};

}  // namespace pystrobe::remote
