// SPDX-License-Identifier: Apache-2.0
//
// A thread pinned to one CPU that runs copies there, at once or at a time set. While it runs, the
// target does not: that is the pause.
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
#include "sampler/remote/wake_timer.h"

namespace pystrobe::remote {

/// Runs the jobs it is given one after the other, in their order. A job that went well is fetched
/// when the pacer wakes anyway: no wake-up is spent on telling it. Only one that needs it at once
/// wakes the pacer, away from the CPU to which the target has moved.
///
/// A job may be given ahead of its time. A timer then wakes the probe, and as it fires on the CPU
/// where it was set, neither the pacer nor the target's CPU spends a timer on it.
/// [all but Main: the pacer]
class Probe {
 public:
  /// That can be waiting at once.
  static constexpr uint32_t kMostJobs = 32;
  /// A job may begin so long before its time: the timer's CPU and the probe's need not read quite
  /// the same clock, and there is no second wake-up.
  static constexpr Nanoseconds kEarly = std::chrono::microseconds(20);

  /// Starts the thread. Fails when it may not be pinned there, or there may be no more threads.
  static Result<std::unique_ptr<Probe>> Start(int cpu, Pacer& pacer);
  ~Probe();

  int cpu() const { return cpu_; }
  /// CPU time that the thread has used.
  Nanoseconds Cpu() { return ThreadCpuOf(thread_.native_handle()); }

  /// Wakes the probe to run `job`, which must stay untouched until it is done. Not while busy.
  void Submit(CopyJob& job);
  /// Runs `job` on the calling thread while the probe keeps its CPU from others. Not while busy.
  /// False where the probe did not come, or lost the CPU: then there is no result.
  bool RunBeside(CopyJob& job);
  /// For how long it has kept its CPU so since this was asked last, whatever came of it.
  Nanoseconds TakeStay() { return hold_.TakeStay(); }
  /// Has the probe run `job` at `at` (CLOCK_MONOTONIC), which is not before that of the job before.
  /// False where there is no room or the kernel grants no more timers.
  bool SubmitAt(CopyJob& job, Nanoseconds at);
  /// Takes back the jobs whose time is after `now` and that have not begun. Returns how many: the
  /// last ones submitted.
  uint32_t Withdraw(Nanoseconds now);
  /// Wakes the probe for jobs whose time has come, should their timers be late: the CPU where they
  /// were set may itself be held up.
  void Remind() { WakeThread(tid_); }
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
    /// kFree, kRunning, or the time of the job that waits, which says also which of two it is.
    std::atomic<Nanoseconds> state{kFree};
    CopyJob* job = nullptr;
    WakeTimer timer;
  };
  static constexpr Nanoseconds kFree{-1}, kRunning{-2}, kAtOnce{0};

  Probe(int cpu, Pacer& pacer) : cpu_(cpu), pacer_(pacer) {}
  void Main(std::promise<pid_t> started);
  /// False when no job's time has come.
  bool RunNext();
  Slot& SlotOf(uint32_t number) { return slots_[number % kMostJobs]; }

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
  pid_t tid_ = 0;
  std::thread thread_;
};

}  // namespace pystrobe::remote
