// SPDX-License-Identifier: Apache-2.0
//
// A thread of this process that sleeps until a time, or until another one wakes it by a signal.
#pragma once

#include <sys/types.h>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// Sleeps until `until` (CLOCK_MONOTONIC; max: for ever), or until woken since it last returned.
/// True: woken, or it may be so. The signal is sent to the thread alone, which keeps it blocked, so
/// no handler of the process runs for it. It says no more than that there may be something to do: a
/// wake-up from before can come late, two can come as one, and one that was meant for the process
/// can come here.
///
/// The timer is the calling CPU's, and who has that CPU meanwhile is taken off it by the interrupt
/// itself. Woken from another CPU it is marked first and interrupted microseconds later, and a
/// system call that ends in between gives the CPU away already: what a wake-up finds is no chance
/// moment of the program (bench/micro/wake_bias.cpp). (Where the kernel may have another CPU keep
/// the timers of an isolated one, nohz_full= with kernel.timer_migration, that is so here too.)
/// [a thread of StartThread, which has signals blocked]
bool SleepUntilWoken(Nanoseconds until);

/// [any thread]
void WakeThread(pid_t tid);

}  // namespace pystrobe::remote
