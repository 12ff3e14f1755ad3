// SPDX-License-Identifier: Apache-2.0
//
// What the kernel has counted of the calling thread.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

struct OwnUse {
  int64_t switches = 0;  ///< context switches away from it, of either kind
  Nanoseconds cpu{};     ///< as of the last switch: within microseconds of when it woke
};

/// [any thread]
inline OwnUse OwnUseNow() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto time = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return {usage.ru_nvcsw + usage.ru_nivcsw, time(usage.ru_utime) + time(usage.ru_stime)};
}

}  // namespace pystrobe::remote
