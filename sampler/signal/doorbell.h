// SPDX-License-Identifier: Apache-2.0
//
// A handler that has something which cannot wait, and a thread that sleeps meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/base/clock.h"
#include "sampler/remote/futex.h"

namespace pystrobe::signals {

class Doorbell {
 public:
  /// Ends the sleep; or the next, if there is none. [any thread, async-signal-safe]
  void Ring() {
    if (rung_.exchange(1) == 0) remote::FutexWake(rung_);
  }

  /// Sleeps until Ring was called since the last Sleep, or `until` (CLOCK_MONOTONIC). [one thread]
  void Sleep(Nanoseconds until) {
    remote::FutexWait(rung_, 0, until);
    rung_.exchange(0);
  }

 private:
  std::atomic<uint32_t> rung_{0};
};

}  // namespace pystrobe::signals
