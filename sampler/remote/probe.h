// SPDX-License-Identifier: Apache-2.0
//
// A thread pinned to one CPU that runs a copy when woken. While it runs there, the target does not:
// that is the pause.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/remote/copy_job.h"

namespace pystrobe::remote {

/// Asks the scheduler to run the calling thread soon after it wakes: a short slice, and the nice
/// level that privileges allow; timers without slack. What is refused is left as it is.
void MakeThreadPrompt();

/// Pins the calling thread; fails with kPermission or kInvalidArgument (a CPU outside our cpuset).
Result<void> PinTo(int cpu);

/// [Submit and Wait from one thread: the pacer]
class Probe {
 public:
  /// Starts the thread and waits until it is pinned. Fails when the CPU is not ours to enter.
  static Result<std::unique_ptr<Probe>> Start(int cpu);
  ~Probe();

  int cpu() const { return cpu_; }

  /// Wakes the probe to run `job`, which must stay untouched until Wait said true.
  void Submit(CopyJob& job);
  /// Waits for the submitted job; false after `timeout`: the CPU does not let the probe run (a
  /// real-time program has it). The job still belongs to the probe then; Wait again.
  bool Wait(Nanoseconds timeout);
  /// A job was submitted and Wait has not said true.
  bool busy() const { return done_.load(std::memory_order_acquire) != submitted_; }

 private:
  explicit Probe(int cpu) : cpu_(cpu) {}
  void Main();

  int cpu_;
  uint32_t submitted_ = 0;
  CopyJob* job_ = nullptr;
  std::atomic<uint32_t> request_{0};
  std::atomic<uint32_t> done_{0};
  std::atomic<int> pin_error_{-1};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace pystrobe::remote
