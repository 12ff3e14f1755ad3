// SPDX-License-Identifier: Apache-2.0
//
// The parts of /proc that we read. Text in, values out; parsers are apart from the files so that
// they can be tested on odd input. [any thread]
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/scoped_fd.h"

namespace pystrobe {

/// What the kernel puts behind the path of a file that has no name any more.
inline constexpr std::string_view kDeletedSuffix = " (deleted)";

/// One line of /proc/PID/maps.
struct Mapping {
  uint64_t start = 0, end = 0;
  uint64_t offset = 0;
  uint64_t inode = 0;
  bool readable = false, writable = false, executable = false;
  bool deleted = false;  ///< the kernel's " (deleted)" was behind the path
  std::string path;      ///< empty for anonymous memory; "[heap]" and the like as they are

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

std::vector<Mapping> ParseMaps(std::string_view text);
Result<std::vector<Mapping>> ReadMaps(pid_t pid);

/// Fields of /proc/PID/stat or task/TID/stat; a name with spaces and brackets is handled.
struct TaskStat {
  std::string name;  ///< the kernel's name of the thread, at most 15 bytes
  char state = '?';
  pid_t parent = 0;
  bool is_kernel_thread = false;
  uint64_t user_ticks = 0, system_ticks = 0;
  uint64_t child_ticks = 0;  ///< CPU time of the children that ended and were waited for
  uint64_t start_ticks = 0;  ///< with the pid, identifies a process for good
  int processor = -1;        ///< CPU it last ran on
};
std::optional<TaskStat> ParseTaskStat(std::string_view text);
Result<TaskStat> ReadTaskStat(pid_t pid, pid_t tid);

/// Fields of /proc/PID/task/TID/schedstat.
struct SchedStat {
  uint64_t cpu_ns =
      0;  ///< charged to the thread; of a running thread, as of its last switch or tick
  uint64_t run_delay_ns = 0;  ///< waiting on a run queue
  uint64_t switches = 0;      ///< times it was put on a CPU

  /// False where the kernel keeps no such statistics: then cpu_ns counts in clock ticks. Also of a
  /// thread that has not run yet.
  bool exact() const { return switches > 0; }
};
std::optional<SchedStat> ParseSchedStat(std::string_view text);

/// Fields of /proc/PID/status that we use.
struct ProcessStatus {
  uid_t real_uid = 0, effective_uid = 0, saved_uid = 0;
  gid_t real_gid = 0;
  pid_t process = 0;  ///< Tgid: the process that a thread belongs to
  pid_t tracer = 0;
  int seccomp = 0;  ///< 0 none, 1 strict, 2 filter
  uint64_t effective_capabilities = 0, permitted_capabilities = 0;
  std::vector<pid_t> namespace_pids;  ///< NSpid: its pid in each nested namespace, outermost first
  int thread_count = 0;
};
ProcessStatus ParseStatus(std::string_view text);
Result<ProcessStatus> ReadStatus(pid_t pid);
/// Of one thread: its NSpid is its tid in each namespace.
Result<ProcessStatus> ReadTaskStatus(pid_t pid, pid_t tid);

/// What a file that is kept open holds now, as much as fits; empty when it cannot be read.
std::string_view ReadInto(int fd, std::span<char> buffer);
/// A whole small file, as /proc has them.
Result<std::string> ReadSmallFile(const std::string& path);
Result<std::string> ReadLink(const std::string& path);
Result<ScopedFd> OpenForReading(const std::string& path);
/// Thread ids of a process, ascending. Fails with kExited when it is gone.
Result<std::vector<pid_t>> ListTasks(pid_t pid);
/// Its children, ascending; empty where the kernel does not tell.
std::vector<pid_t> ListChildren(pid_t pid);
/// Its argument vector; empty for a zombie or kernel thread.
std::vector<std::string> ReadCommandLine(pid_t pid);

}  // namespace pystrobe
