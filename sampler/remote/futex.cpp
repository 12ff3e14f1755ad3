// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace pystrobe::remote {

void FutexWait(std::atomic<uint32_t>& word, uint32_t value, Nanoseconds until) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
  const timespec time{seconds.count(), (until - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, &time, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace pystrobe::remote
