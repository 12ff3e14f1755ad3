// SPDX-License-Identifier: Apache-2.0
//
// Every thread's stack, now.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "profiler/base/error.h"
#include "sampler/pyabi/objects.h"
#include "sampler/remote/sampler.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

struct DumpOptions {
  /// Values of local variables: may be secret, so only when asked. They are read in the same pause
  /// as the stack, which takes longer for it.
  bool locals = false;
  PauseMode pause = PauseMode::kAuto;
  /// C functions too, and threads without Python. Each thread is stopped by ptrace, whatever
  /// `pause` is.
  bool native = false;
};

struct DumpFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;
  bool is_native = false;            ///< machine code: `file` as Function::file has it
  std::vector<pyabi::Local> locals;  ///< empty unless asked for
};

struct DumpThread {
  pid_t tid = 0;
  std::string name;  ///< as ThreadTable::UpdateNames has it
  uint64_t interpreter = 0;
  bool holds_gil = false;  ///< free-threaded builds: attached
  char state = '?';     ///< as /proc has it: R running, S sleeping, D waiting for a disk, T stopped
  bool proved = false;  ///< the copy is proved consistent
  bool complete = false;  ///< the chain reached the thread's base frame
  bool has_python = true;
  bool native_whole = true;  ///< with `native`: C functions up to the thread's first, all in place
  std::vector<DumpFrame> frames;  ///< leaf first
};

struct Dump {
  TargetInfo target;
  std::vector<DumpThread> threads;  ///< main thread first, then by tid
  int64_t held_ns = 0;              ///< how long the target waited for us in all
};

/// Takes one look at every thread. Errors as Target::Open.
Result<Dump> TakeDump(pid_t pid, const DumpOptions& options);

}  // namespace pystrobe::remote
