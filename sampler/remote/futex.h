// SPDX-License-Identifier: Apache-2.0
//
// Sleeping until a word changes, between threads of this process. [any thread]
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Sleeps while `word` is `value`, until FutexWake, `until` (CLOCK_MONOTONIC) or a signal.
void FutexWait(std::atomic<uint32_t>& word, uint32_t value, Nanoseconds until);

/// Wakes all that sleep on `word`.
void FutexWake(std::atomic<uint32_t>& word);

}  // namespace pystrobe::remote
