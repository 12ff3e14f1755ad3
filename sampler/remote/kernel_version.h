// SPDX-License-Identifier: Apache-2.0
//
// Which Linux this is. [any thread]
#pragma once

#include <sys/utsname.h>

#include <cstdio>
#include <optional>
#include <utility>

namespace pystrobe::remote {

/// Major and minor of the release, such as "6.1.0-13-amd64". Nullopt where it begins otherwise.
inline std::optional<std::pair<int, int>> KernelVersionOf(const utsname& name) {
  int major = 0, minor = 0;
  if (std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return std::nullopt;
  return std::pair(major, minor);
}

}  // namespace pystrobe::remote
