// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "profiler/base/proc.h"

namespace pystrobe::testing {

/// The one of this process' threads that the kernel knows by this name; -1: there is none. Of
/// several the youngest: one that was joined may be listed for a moment still.
inline pid_t ThreadOfOurs(std::string_view name) {
  const auto tasks = ListTasks(getpid());
  if (!tasks) return -1;
  pid_t found = -1;
  for (const pid_t tid : *tasks) {
    const auto comm = ReadSmallFile(fmt::format("/proc/self/task/{}/comm", tid));
    if (comm && *comm == fmt::format("{}\n", name)) found = std::max(found, tid);
  }
  return found;
}

}  // namespace pystrobe::testing
