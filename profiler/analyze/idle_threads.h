// SPDX-License-Identifier: Apache-2.0
//
// Which threads hardly ran. Such (a pool's workers waiting for work, say) would drown the others in
// wall mode. [any thread]
#pragma once

#include <cstdint>
#include <span>

#include "profiler/analyze/profile.h"

namespace pystrobe::analyze {

/// Whether the kernel charged a thread less than 1 % of the time it lived in the range, and less
/// than 1 % of its samples show it running or holding the lock. Never one that came or went in the
/// range within fewer than 100 samples: that is too little to tell. `range_ns` is the length of the
/// range.
bool HardlyRan(const Weights& thread_total, uint64_t range_ns);

/// Says which threads are idle: those that hardly ran, if they used less than 1 % of the range's
/// length together; else those of them that used less than their even part of this 1 %. So however
/// many they are, what they used is never more than that.
void MarkIdle(std::span<ThreadProfile> threads, uint64_t range_ns);

}  // namespace pystrobe::analyze
