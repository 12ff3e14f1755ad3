// SPDX-License-Identifier: Apache-2.0
//
// A thread pinned to one CPU that runs a copy when woken. While it runs there, the target does not:
// that is the pause.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/remote/copy_job.h"

namespace pystrobe::remote {

/// The kernel's struct sched_attr (include/uapi/linux/sched/types.h, first version); glibc 2.36 has
/// no wrapper.
struct SchedAttr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

/// While it lives, the scheduler runs the calling thread soon after it wakes: a short slice, the
/// nice level that privileges allow, timers without slack; what is refused is left as it is, and so
/// is a real-time thread. At the end the thread's scheduling and CPU affinity are as they were.
class ScopedPromptness {
 public:
  ScopedPromptness();
  ~ScopedPromptness();
  ScopedPromptness(const ScopedPromptness&) = delete;
  ScopedPromptness& operator=(const ScopedPromptness&) = delete;

 private:
  SchedAttr before_{};
  bool changed_ = false;
  int timer_slack_;
  cpu_set_t affinity_;
  bool affinity_known_;
};

/// Pins the calling thread; fails with kPermission or kInvalidArgument (a CPU outside our cpuset).
Result<void> PinTo(int cpu);

/// A word that a sleeper waits on until a time, or until somebody raises it.
class Attention {
 public:
  void Raise();
  /// Sleeps until `until` (CLOCK_MONOTONIC) unless raised since the last Wait; a signal ends it
  /// too.
  void Wait(Nanoseconds until);

 private:
  std::atomic<uint32_t> raised_{0};
};

/// A job that went well is fetched when the pacer wakes anyway: no wake-up is spent on telling it.
/// Only one that needs it at once raises the pacer's attention. [Submit and Wait: the pacer]
class Probe {
 public:
  /// Starts the thread and waits until it is pinned. Fails when the CPU is not ours to enter.
  static Result<std::unique_ptr<Probe>> Start(int cpu, Attention& attention);
  ~Probe();

  int cpu() const { return cpu_; }

  /// Wakes the probe to run `job`, which must stay untouched until Wait said true. Not while busy.
  void Submit(CopyJob& job);
  /// Waits for the submitted job; false after `timeout`: the CPU does not let the probe run (a
  /// real-time program has it). The job still belongs to the probe then; Wait again.
  bool Wait(Nanoseconds timeout);
  /// Lets the probe go on on any of `cpus`, for good: the job ends then, without proof.
  void Release(const cpu_set_t& cpus);
  /// A job was submitted and Wait has not said true.
  bool busy() const { return done_.load() != submitted_; }

 private:
  Probe(int cpu, Attention& attention) : cpu_(cpu), attention_(attention) {}
  void Main(std::promise<Result<void>> pinned);

  int cpu_;
  Attention& attention_;
  uint32_t submitted_ = 0;
  CopyJob* job_ = nullptr;
  std::atomic<uint32_t> request_{0};
  std::atomic<uint32_t> done_{0};
  std::atomic<bool> awaited_{false};  ///< the pacer sleeps on done_
  std::atomic<bool> stop_{false};
  pid_t tid_ = 0;
  std::thread thread_;
};

}  // namespace pystrobe::remote
