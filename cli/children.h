// SPDX-License-Identifier: Apache-2.0
//
// What of a target's work its child processes did: they are not sampled. [any thread]
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace pystrobe::cli {

/// What /proc says of a process and its children.
struct ChildUse {
  uint64_t own_ticks = 0;    ///< CPU time of the process itself
  uint64_t child_ticks = 0;  ///< CPU time of the children that it has waited for
};

/// All 0 when the process is gone. A process that ended and was not reaped is there still.
ChildUse ReadChildUse(pid_t pid);

/// One line about the children that live and run Python, or the same program as `pid`, else about
/// the CPU time of those that ended since `before`, if it was much. Empty when there is nothing to
/// say.
std::string ChildrenNote(pid_t pid, const ChildUse& before);

/// The second part of it. Ticks are 10 ms.
std::string ChildTimeNote(const ChildUse& before, const ChildUse& now);

}  // namespace pystrobe::cli
