// SPDX-License-Identifier: Apache-2.0
//
// Another process' memory by process_vm_readv.
#pragma once

#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/base/scoped_fd.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::remote {

/// Stateless, so any number of threads may read at once. [any thread]
class ProcessMemory final : public pyabi::Memory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override;
  /// ReadAll that tells why: 0, or errno (EPERM refused, ESRCH gone, EFAULT not all of it
  /// readable).
  int TryReadAll(std::span<const pyabi::ReadRequest> requests) const;
  /// Reads requests one after the other up to the first that is not wholly readable; returns how
  /// many were read.
  size_t ReadSome(std::span<const pyabi::ReadRequest> requests) const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// What a process had for memory when this was opened, by /proc/PID/mem: that stays with its
/// address space, so nothing can be read any more after an exit or exec. A system call for each
/// piece. [any thread]
class AddressSpace final : public pyabi::Memory {
 public:
  explicit AddressSpace(ScopedFd fd) : fd_(std::move(fd)) {}
  bool ReadAll(std::span<const pyabi::ReadRequest> requests) const override;

 private:
  ScopedFd fd_;
};

}  // namespace pystrobe::remote
