// SPDX-License-Identifier: Apache-2.0
//
// The thread that stops others by ptrace.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "sampler/remote/ptrace_stop.h"

namespace pystrobe::remote {

/// A tracer is a thread, and only its end makes the kernel let go of what it asked to stop and what
/// has not stopped yet (ptrace(2)): a thread that waits for a disk may take for ever. So it is a
/// thread of our own, which also lets late ones go on as soon as they have stopped.
/// [one thread at a time]
class Tracer {
 public:
  /// The thread is scheduled as the calling one is now. Fails when there may be no more threads.
  static Result<std::unique_ptr<Tracer>> Start();
  /// Nothing is traced any more afterwards.
  ~Tracer();

  static constexpr auto kAlways = [] { return true; };

  struct Outcome {
    bool stopped = false;
    Nanoseconds held{};  ///< that `tid` lost; none when it was stopped by a signal anyway
  };
  /// Calls `copy` on the tracer's thread while `tid` stands still; or, where PtraceStop::Stop
  /// fails, or `wanted` says no, while it does what it likes. `wanted` is asked last of all: system
  /// calls of a thread that sleeps may fail by a stop.
  Outcome Hold(pid_t tid, FunctionRef<void()> copy, FunctionRef<bool()> wanted = kAlways);

 private:
  struct Order {
    pid_t tid;
    FunctionRef<void()> copy;
    FunctionRef<bool()> wanted;
    Outcome outcome;
  };

  Tracer() = default;
  void Main();
  static void Run(Order& order, PtraceStop& stop);

  std::mutex mutex_;
  std::condition_variable changed_;
  Order* order_ = nullptr;  // not done yet
  bool end_ = false;
  std::thread thread_;
};

}  // namespace pystrobe::remote
