// SPDX-License-Identifier: Apache-2.0
//
// What the kernel charged one thread of the target, and whether it runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "profiler/base/clock.h"
#include "profiler/base/proc.h"
#include "sampler/remote/task_files.h"

namespace pystrobe::remote {

/// Whether a thread that is awake has a CPU, or waits for one.
enum class OnCpu : uint8_t { kUnknown, kNo, kYes };

/// What the kernel says of a thread at one moment.
struct TaskLook {
  SchedStat stat;
  bool awake = true;      ///< on a CPU or waiting for one
  bool in_pause = false;  ///< it was not on a CPU, so `stat`, which is exact then, is up to date
  bool unsure = false;    ///< that it is awake may be our doing: see CopyJob::awake_before
  OnCpu on_cpu = OnCpu::kUnknown;  ///< just before the pause
};

/// True when the thread did not run between what the kernel said then and what it said later.
inline bool SameRun(const SchedStat& a, const SchedStat& b) {
  return a.cpu_ns == b.cpu_ns && a.switches == b.switches;
}

/// True when the contents of /proc/PID/task/TID/syscall are of a thread that is awake.
bool SaysAwake(std::string_view syscall_text);

/// CPU time of all threads a process has and had, as the kernel charged it; nullopt when it is
/// gone.
std::optional<Nanoseconds> ProcessCpuOf(pid_t pid);

/// Reads files of /proc/PID/task/TID. `schedstat` gives exact nanoseconds for about 2 us, where it
/// is kept open; on kernels without it `stat` gives ticks of 10 ms. [one thread]
class TaskClock {
 public:
  TaskClock(TaskFiles& files, pid_t pid, pid_t tid);

  /// Nullopt when the thread is gone. Of a running thread cpu_ns is as of its last switch or tick;
  /// a thread that was just preempted is up to date. Where the kernel could not be asked (too many
  /// open files), what it said last; before that nullopt too: see unknown().
  std::optional<SchedStat> Read();

  /// The last Read() does not tell whether the thread is there.
  bool unknown() const { return exact_ ? schedstat_.unknown() : stat_.unknown(); }

  /// Whether the thread is on a CPU or waiting for one, now. True where the kernel cannot be asked:
  /// nobody may conclude that it stood still.
  bool Running();

  /// Descriptors of task/TID/syscall, stat and schedstat, as TaskFile::Lend; of the latter -1 where
  /// the kernel has none.
  int syscall_fd() { return syscall_.Lend(); }
  int stat_fd() { return stat_.Lend(); }
  int schedstat_fd() { return exact_ ? schedstat_.Lend() : -1; }

  bool exact() const { return exact_; }

 private:
  std::optional<SchedStat> ReadTicks();

  bool exact_ = true;
  TaskFile schedstat_, stat_, syscall_;
  std::optional<SchedStat> last_;
};

}  // namespace pystrobe::remote
