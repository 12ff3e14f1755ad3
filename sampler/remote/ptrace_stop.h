// SPDX-License-Identifier: Apache-2.0
//
// Stopping one thread by ptrace for the time of a copy.
#pragma once

#include <sys/types.h>

namespace pystrobe::remote {

/// Holds at most one thread. The thread is detached again whatever happens: at Resume, or, if it
/// could not stop in time (it waits in the kernel for a disk), as soon as it has. An exit status is
/// never taken from whoever waits for it. [one thread, for all its life: the tracer is a thread]
class PtraceStop {
 public:
  PtraceStop() = default;
  ~PtraceStop();
  PtraceStop(const PtraceStop&) = delete;
  PtraceStop& operator=(const PtraceStop&) = delete;

  /// True when the thread stands still until Resume. False when it is gone, has another tracer, or
  /// did not stop within 100 ms; also while a thread of an earlier Stop has not stopped yet.
  bool Stop(pid_t tid);
  /// Lets the thread go on, with the signal it was about to get.
  void Resume();

 private:
  enum class State { kWaiting, kStopped, kGone };
  State Look();
  State WaitUntilStopped();

  pid_t tid_ = 0;   ///< seized; 0: none
  int signal_ = 0;  ///< to be delivered at Resume
};

}  // namespace pystrobe::remote
