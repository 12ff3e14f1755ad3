// SPDX-License-Identifier: Apache-2.0
//
// Stopping one thread by ptrace for the time of a copy.
#pragma once

#include <sys/types.h>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Holds at most one thread, of one process always. One that could not stop in time (it waits in
/// the kernel for a disk) stays asked to, and does stop some day: call Resume until it has, or let
/// the calling thread end. An exit status is never taken from whoever waits for it. [one thread,
/// for all its life: the tracer is a thread]
class PtraceStop {
 public:
  PtraceStop() = default;
  ~PtraceStop() { Resume(); }
  PtraceStop(const PtraceStop&) = delete;
  PtraceStop& operator=(const PtraceStop&) = delete;

  /// True when the thread stands still until Resume. False when it is gone, has another tracer, or
  /// did not stop within 100 ms; also while a thread of an earlier Stop has not stopped yet.
  bool Stop(pid_t tid);
  /// True when the thread held stands still for another reason too: its process was stopped by
  /// SIGSTOP or the like, and loses no time.
  bool stopped_anyway() const { return stopped_anyway_; }
  /// When the thread held was last seen not to stand still (CLOCK_MONOTONIC).
  Nanoseconds stopped_since() const { return stopped_since_; }
  /// CPU time that the calling thread had used then.
  Nanoseconds own_cpu_before() const { return own_cpu_before_; }
  /// Lets the thread go on, with the signal it was about to get, if it has stopped.
  void Resume();
  /// A thread was asked to stop and has not yet been let go.
  bool waits_for_one() const { return tid_ != 0; }

 private:
  enum class State { kWaiting, kStopped, kGone };
  State Look();
  State StillRuns(Nanoseconds now);
  /// A thread that executes another program takes its process' id, and stays traced (ptrace(2),
  /// "execve(2) under ptrace").
  bool FollowThroughExec();
  State WaitUntilStopped();

  pid_t tid_ = 0;      ///< seized; 0: none
  pid_t process_ = 0;  ///< that they are of; 0: not asked yet
  int signal_ = 0;     ///< to be delivered at Resume
  bool stopped_anyway_ = false;
  Nanoseconds stopped_since_{};
  Nanoseconds own_cpu_before_{};
};

}  // namespace pystrobe::remote
