// SPDX-License-Identifier: Apache-2.0
//
// Whether a thread has had its CPU, and kept everybody else off it, for a while.
#pragma once

#include <cstdint>

#include "profiler/base/switch_flag.h"

namespace pystrobe::remote {

/// The calling thread's time on a CPU from here on. It is told by a SwitchFlag where there is one,
/// for a few nanoseconds, else by the kernel's counts of the thread's context switches: a system
/// call at each end. One at a time. [the thread that made it]
class CpuStay {
 public:
  CpuStay();
  int cpu() const { return cpu_; }
  /// It has not been off that CPU since: nobody else has run there.
  bool Lasts() const;

 private:
  bool has_flag_;
  SwitchFlag flag_;
  int64_t switches_;
  int cpu_;
};

}  // namespace pystrobe::remote
