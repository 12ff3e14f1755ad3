// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "profiler/base/proc.h"

namespace pystrobe::testing {

/// Those of this process' threads that the kernel knows by this name, the youngest first: who was
/// joined may be listed for a moment still.
inline std::vector<pid_t> ThreadsOfOurs(std::string_view name) {
  std::vector<pid_t> found;
  const auto tasks = ListTasks(getpid());
  if (!tasks) return found;
  for (const pid_t tid : *tasks) {
    const auto comm = ReadSmallFile(fmt::format("/proc/self/task/{}/comm", tid));
    if (comm && *comm == fmt::format("{}\n", name)) found.push_back(tid);
  }
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace pystrobe::testing
