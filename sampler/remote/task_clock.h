// SPDX-License-Identifier: Apache-2.0
//
// What the kernel charged one thread of the target, and whether it runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "profiler/base/proc.h"
#include "profiler/base/scoped_fd.h"

namespace pystrobe::remote {

/// What the kernel says of a thread at one moment.
struct TaskLook {
  SchedStat stat;
  bool awake = true;      ///< on a CPU or waiting for one
  bool in_pause = false;  ///< it had just been taken off its CPU, so `stat` is up to date
};

/// True when the contents of /proc/PID/task/TID/syscall are of a thread that is awake.
bool SaysAwake(std::string_view syscall_text);

/// Reads /proc/PID/task/TID files, kept open. `schedstat` gives exact nanoseconds for about 2 us;
/// on kernels without it `stat` gives ticks of 10 ms. [one thread]
class TaskClock {
 public:
  TaskClock(pid_t pid, pid_t tid);

  /// Nullopt when the thread is gone. Of a running thread cpu_ns is as of its last switch or tick;
  /// a thread that was just preempted is up to date.
  std::optional<SchedStat> Read();

  /// Whether the thread is on a CPU or waiting for one, now.
  bool Running();

  /// task/TID/syscall, kept open; -1 when it cannot be opened.
  int syscall_fd();

  /// task/TID/stat, kept open; -1 when it cannot be opened.
  int stat_fd();

  /// task/TID/schedstat, kept open; -1 where the kernel has none.
  int schedstat_fd() const { return exact_ ? schedstat_.get() : -1; }

  bool exact() const { return exact_; }

 private:
  std::optional<SchedStat> ReadTicks();

  pid_t pid_, tid_;
  bool exact_ = true;
  ScopedFd schedstat_, stat_, syscall_;
};

}  // namespace pystrobe::remote
