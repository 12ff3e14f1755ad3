// SPDX-License-Identifier: Apache-2.0
//
// A thread pinned to one CPU that runs copies there, each at a time set. While it runs, the target
// does not: that is the pause.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/cpu_hold.h"
#include "sampler/remote/pacer.h"
#include "sampler/remote/timed_sleep.h"
#include "sampler/remote/wake.h"

namespace pystrobe::remote {

/// Runs the jobs it is given one after the other, in their order. A job that went well is fetched
/// when the pacer wakes anyway: no wake-up is spent on telling it. Only one that needs it at once
/// wakes the pacer, away from the CPU to which the target has moved.
///
/// What it does it begins when a timer of its own CPU has woken it, for the moments at which
/// another CPU can wake it are not chance moments of the target (wake.h). So it is told when it is
/// needed next: then it need not be woken for that. Where it must be, it sleeps once more, for a
/// time of a chance length.
/// [all but Main: the pacer]
class Probe {
 public:
  /// That can be waiting at once.
  static constexpr uint32_t kMostJobs = 32;

  /// Starts the thread. Fails when it may not be pinned there, or there may be no more threads.
  static Result<std::unique_ptr<Probe>> Start(int cpu, Pacer& pacer);
  ~Probe();

  int cpu() const { return cpu_; }
  /// CPU time that the thread has used.
  Nanoseconds Cpu() { return ThreadCpuOf(thread_.native_handle()); }

  /// Has the probe run `job` at `at` (CLOCK_MONOTONIC), which is not before that of the job before;
  /// where that has passed, soon. The job must stay untouched until it is done. False where there
  /// is no room.
  bool Submit(CopyJob& job, Nanoseconds at);
  /// Runs `job` at `at` on the calling thread while the probe keeps its CPU from others. Not while
  /// busy. False where the probe did not come, or lost the CPU: then there is no result.
  bool RunBeside(CopyJob& job, Nanoseconds at);
  /// For how long it has kept its CPU so since this was asked last, whatever came of it.
  Nanoseconds TakeStay() { return hold_.TakeStay(); }
  /// As TimedSleep::Expect.
  void Expect(Nanoseconds at) { sleep_.Expect(at); }
  /// Of the `most` jobs submitted last, takes back those whose time is after `now` and that have
  /// not begun. Returns how many: the last ones.
  uint32_t Withdraw(Nanoseconds now, uint32_t most);
  /// Wakes the probe for jobs whose time has come, should its timer be late.
  void Remind() { sleep_.Wake(); }
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
    WakeTimer timer;
  };
  static constexpr Nanoseconds kFree{-1}, kRunning{-2};

  Probe(int cpu, Pacer& pacer) : cpu_(cpu), pacer_(pacer) {}
  void Main(std::promise<pid_t> started);
  /// When there is something to do: a job, a hold, or what is expected.
  Nanoseconds Due();
  Nanoseconds DueOfJob();
  void Work(Nanoseconds now);
  void RunNext();
  /// Sets the timers of all jobs that wait and are due at `from` or later.
  void SetTimers(Nanoseconds from);
  /// Until `until`, unless what is due is no longer `due`. True where it was woken.
  bool Sleep(Nanoseconds until, Nanoseconds due);
  Slot& SlotOf(uint32_t number) { return slots_[number % kMostJobs]; }

  int cpu_;
  Pacer& pacer_;
  std::array<Slot, kMostJobs> slots_;
  uint32_t submitted_ = 0;
  CpuHold hold_;
  TimedSleep sleep_;
  std::atomic<uint32_t> done_{0};
  std::atomic<bool> awaited_{false};  ///< the pacer sleeps on done_
  std::atomic<bool> released_{false};
  std::atomic<bool> exiled_{false};
  std::atomic<bool> stop_{false};
  pid_t tid_ = 0;
  std::thread thread_;
};

}  // namespace pystrobe::remote
