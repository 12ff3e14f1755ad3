// SPDX-License-Identifier: Apache-2.0
//
// Time. One clock for everything that is recorded: CLOCK_MONOTONIC, in nanoseconds.
// [any thread] [async-signal-safe]
#pragma once

#include <pthread.h>

#include <chrono>
#include <ctime>

namespace pystrobe {

using Nanoseconds = std::chrono::nanoseconds;

namespace internal {
inline Nanoseconds ReadClock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}
}  // namespace internal

/// Time since boot as CLOCK_MONOTONIC counts it.
inline Nanoseconds MonotonicNow() { return internal::ReadClock(CLOCK_MONOTONIC); }
/// CPU time of the calling thread.
inline Nanoseconds ThreadCpuNow() { return internal::ReadClock(CLOCK_THREAD_CPUTIME_ID); }
/// CPU time of a thread of this process that has not been joined. [not async-signal-safe]
inline Nanoseconds ThreadCpuOf(pthread_t thread) {
  clockid_t clock{};
  return pthread_getcpuclockid(thread, &clock) == 0 ? internal::ReadClock(clock) : Nanoseconds{};
}
/// CPU time of this process, all threads.
inline Nanoseconds ProcessCpuNow() { return internal::ReadClock(CLOCK_PROCESS_CPUTIME_ID); }
/// Unix time.
inline Nanoseconds UnixNow() { return internal::ReadClock(CLOCK_REALTIME); }

}  // namespace pystrobe
