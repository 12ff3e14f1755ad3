// SPDX-License-Identifier: Apache-2.0
//
// A running Python process, found and verified. Nothing here stops it or writes to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/scoped_fd.h"
#include "sampler/pyabi/layout.h"
#include "sampler/remote/process_memory.h"

namespace pystrobe::remote {

using pyabi::Address;

class ThreadIds;

/// One PyThreadState.
struct PyThread {
  Address tstate = 0;
  Address interpreter = 0;
  uint64_t interpreter_id = 0;
  uint64_t pthread = 0;  ///< pthread_self() of it
  pid_t tid = 0;         ///< in the sampler's pid namespace; 0 when it could not be found
};

/// The interpreters of a process, the youngest first, and the threads of each.
struct ThreadStates {
  std::vector<Address> interpreters;
  std::vector<PyThread> threads;
};

/// What is known about a target; constant while it does not exec.
struct TargetInfo {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  ///< /proc/PID/stat, to notice a recycled pid
  std::string executable;    ///< as /proc/PID/exe has it, " (deleted)" removed
  std::string python_file;   ///< the file that holds the interpreter: executable or libpython
  bool python_file_deleted = false;
  std::vector<std::string> command;
  pyabi::Layout layout;
  Address runtime = 0;    ///< _PyRuntime
  Address code_type = 0;  ///< PyCode_Type
  std::string found_by;   ///< "dynamic symbol", "symbol table", "section", "memory scan"
  /// The target's own __rseq_offset when its libc registers rseq and a check against /proc agreed.
  std::optional<int64_t> rseq_offset;
  std::string rseq_reason;  ///< why rseq_offset is not there
};

/// Opens the process and finds its interpreter: /proc/PID/maps -> ELF -> _PyRuntime -> version ->
/// layout, each step checked by walking what must hold: every thread state points back to its
/// interpreter, its pthread id and kernel thread id exist, frames lead to code objects whose type
/// is PyCode_Type, their names are strings.
///
/// Errors: kNotFound (no such pid), kExited, kPermission (with the exact refusal and the least
/// privilege that helps: see permission.h), kNotPython (says what it runs: PyPy, 32 bit, zombie,
/// kernel thread, no interpreter found, or one that has not started yet: a process just begun may
/// become Python a moment later), kUnsupported (found, but the layout did not hold: what was seen).
class Target {
 public:
  static Result<Target> Open(pid_t pid);
  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;
  ~Target();

  const TargetInfo& info() const { return info_; }
  const pyabi::Layout& layout() const { return info_.layout; }
  const ProcessMemory& memory() const { return memory_; }
  /// As of the program that was opened, whatever the process has become.
  const AddressSpace& address_space() const { return address_space_; }
  pid_t pid() const { return info_.pid; }

  /// All thread states of all interpreters, as they are now. A list that changes while it is read
  /// is read again; threads that are being born or dying may be missing. Fails with kExited when
  /// the process is gone, kUnreadable when the lists made no sense several times over.
  Result<ThreadStates> ListThreads() const;

  /// True while the same program runs in the process: it did not exit, and did not exec.
  bool StillThere() const;

 private:
  Target(TargetInfo info, ProcessMemory memory, AddressSpace address_space,
         std::unique_ptr<ThreadIds> ids);

  TargetInfo info_;
  ProcessMemory memory_;
  AddressSpace address_space_;
  std::unique_ptr<ThreadIds> ids_;
};

}  // namespace pystrobe::remote
