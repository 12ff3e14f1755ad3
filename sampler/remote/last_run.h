// SPDX-License-Identifier: Apache-2.0
//
// Which of the threads of a CPU had it last.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace pystrobe::remote {

/// When a thread was last charged CPU time, which is when it last lost its CPU unless it has one:
/// milliseconds by the clock of the CPU it is queued on (se.exec_start of /proc/TID/sched;
/// kernel/sched/debug.c). Nullopt where the text has none.
std::optional<double> ParseExecStart(std::string_view sched_text);

/// Of thread `tid`, which is awake and queued on the CPU that the calling thread has woken on a
/// moment ago: true where it had that CPU until then, false where it has only been woken. Nullopt
/// where the kernel does not tell. Some twenty microseconds. [any thread]
std::optional<bool> HadCpuBefore(pid_t tid);

}  // namespace pystrobe::remote
