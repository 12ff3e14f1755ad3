// SPDX-License-Identifier: Apache-2.0
//
// Files of /proc/PID/task/TID, read again and again, with as many descriptors as can be spared.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profiler/base/scoped_fd.h"

namespace pystrobe::remote {

/// How many files one run may have open. A file that stays open is read for half the time, but a
/// target may have more threads than we may have descriptors, and they may be another program's:
/// that of a Python process that samples. So there is a limit, and what is beyond is opened for
/// each read. [one thread]
class TaskFiles {
 public:
  /// A third of the descriptors that are free now for files that stay open, and a third for those
  /// lent.
  TaskFiles();
  explicit TaskFiles(size_t most) : most_(most) {}
  TaskFiles(const TaskFiles&) = delete;
  TaskFiles& operator=(const TaskFiles&) = delete;

  /// Closes what TaskFile::Lend opened for this purpose alone. While no copy is under way.
  void CloseLent();

  size_t kept() const { return kept_; }

 private:
  friend class TaskFile;

  size_t most_;
  size_t kept_ = 0;
  std::vector<ScopedFd> lent_;
  uint64_t lending_ = 1;  // counts CloseLent()
};

/// One such file. [one thread]
class TaskFile {
 public:
  /// Opens nothing yet. `files` outlives it; `name` lives for ever.
  TaskFile(TaskFiles& files, pid_t pid, pid_t tid, const char* name)
      : files_(files), name_(name), pid_(pid), tid_(tid) {}
  ~TaskFile();
  TaskFile(const TaskFile&) = delete;
  TaskFile& operator=(const TaskFile&) = delete;

  /// What it says now, into `buffer`; empty when it cannot be read.
  template <size_t kSize>
  std::string_view Read(char (&buffer)[kSize]) {
    return Read(buffer, kSize);
  }
  /// The last Read() failed, and not because there is no such file or thread.
  bool unknown() const;

  /// A descriptor for others to read, good until CloseLent(); -1 when it cannot be had.
  int Lend();

 private:
  std::string_view Read(char* buffer, size_t size);
  /// True when it is open to stay.
  bool Keep();
  ScopedFd Open();

  TaskFiles& files_;
  const char* name_;
  pid_t pid_, tid_;
  ScopedFd fd_;
  int error_ = 0;         // of the last attempt
  int lent_ = -1;         // what it lent ...
  uint64_t lent_in_ = 0;  // ... in this lending
};

}  // namespace pystrobe::remote
