// SPDX-License-Identifier: Apache-2.0
//
// The thread that stops others by ptrace.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "sampler/remote/ptrace_stop.h"
#include "sampler/remote/timed_sleep.h"

namespace pystrobe::remote {

/// A tracer is a thread, and only its end makes the kernel let go of what it asked to stop and what
/// has not stopped yet (ptrace(2)): a thread that waits for a disk may take for ever. So it is a
/// thread of our own, which also lets late ones go on as soon as they have stopped. It stops
/// threads of one process.
/// [one thread at a time]
class Tracer {
 public:
  /// The thread is scheduled as the calling one is now, and may run where that may. Fails when
  /// there may be no more threads.
  static Result<std::unique_ptr<Tracer>> Start();
  /// Nothing is traced any more afterwards.
  ~Tracer();

  /// When a thread is asked to stop, `at` (CLOCK_MONOTONIC; passed: soon), and from which CPU: that
  /// where it was last, or -1 for any, as it must be for threads that make no room for the tracer.
  struct Moment {
    int cpu;
    Nanoseconds at;
  };
  static constexpr Moment kAnyMoment{-1, {}};

  struct Outcome {
    bool stopped = false;
    Nanoseconds held{};  ///< that `tid` lost; none when it was stopped by a signal anyway
    bool woken = false;  ///< the tracer was not about to wake for it
    int cpu = -1;        ///< on which the tracer was
  };
  /// Calls `copy` on the tracer's thread while the thread that `whom` says stands still; or, where
  /// PtraceStop::Stop fails, or that is 0, while all do what they like. `whom` is asked on that
  /// thread and last of all: system calls of a thread that sleeps may fail by a stop.
  ///
  /// Asked from another CPU a thread stops as it is interrupted there, microseconds later, or at
  /// the end of a system call before that: of a loop around system calls such stops show little
  /// else. So where takes_cpus() it first takes that CPU from it as a Probe does: woken by a timer
  /// of that CPU, for this time where it was expected there, else after a ChanceNap.
  Outcome Hold(Moment moment, FunctionRef<pid_t()> whom, FunctionRef<void()> copy);
  /// The same with thread `tid`.
  Outcome Hold(pid_t tid, Moment moment, FunctionRef<void()> copy) {
    return Hold(moment, [tid] { return tid; }, copy);
  }
  /// The tracer is real-time, and what it does begins on the CPU that Hold names. Not for a while
  /// after it was not heard of there: a program of higher priority had it.
  bool takes_cpus() const { return is_real_time_ && MonotonicNow() >= away_until_; }
  /// As TimedSleep::Expect, where it is.
  void Expect(Nanoseconds at);

 private:
  struct Order {
    Moment moment;
    FunctionRef<pid_t()> whom;
    FunctionRef<void()> copy;
    bool pinned;  ///< the tracer has been sent to that CPU
    bool moved;   ///< it was elsewhere before
    Outcome outcome;
  };

  Tracer() = default;
  /// The tracer will be on `cpu`; -1, and where it may not go there: anywhere. True where that is
  /// not where it was. (It does not go by itself: from a CPU that others have it would not come.)
  bool MoveTo(int cpu);

  void Main(std::promise<pid_t> started);
  /// When there is something to do. `look_at`: for a thread that is late to stop.
  Nanoseconds Due(Nanoseconds look_at) const;
  void Run(Order& order, PtraceStop& stop);

  // The thread that calls Hold:
  pid_t tid_ = 0;
  bool is_real_time_ = false;
  Nanoseconds away_until_{};
  cpu_set_t everywhere_{};  // where it may run when it is not needed on one CPU
  int cpu_ = -1;            // to which it is pinned
  // Both:
  std::atomic<Order*> order_{nullptr};  // not begun, or under way
  std::atomic<uint32_t> done_{0};       // orders
  TimedSleep sleep_;
  std::atomic<bool> end_{false};
  // The tracer:
  Nanoseconds own_cpu_{};  // when it last let somebody go

  std::thread thread_;
};

}  // namespace pystrobe::remote
