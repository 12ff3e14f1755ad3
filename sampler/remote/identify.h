// SPDX-License-Identifier: Apache-2.0
//
// What a process is when it is not a Python we can sample, said in words. [any thread]
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "profiler/base/error.h"
#include "sampler/native/elf_image.h"

namespace pystrobe::remote {

/// The error for a /proc that tells nothing of the processes here: that of another pid namespace,
/// whose numbers are all somebody else's, or none at all. Nullopt when it is as it should be.
std::optional<Error> WhyNoProc();

/// The error for a pid that names no process that could be read at all: none such, a thread, a
/// zombie, a kernel thread. Nullopt when it names a live process with a program.
std::optional<Error> WhyNoProgram(pid_t pid);

/// The error for an executable of another kind than ours (32 bit, another machine), judged by the
/// head of /proc/PID/exe. Nullopt when it is of our kind or cannot be read.
std::optional<Error> WhyForeign(pid_t pid, const std::string& executable);

/// The kNotPython or kUnsupported error for a process in which no interpreter was found: names
/// PyPy, CPythons too old, or what runs there.
Error WhyNotPython(pid_t pid, const pyabi::Memory& memory, const std::string& executable,
                   const std::vector<native::Module>& modules);

}  // namespace pystrobe::remote
