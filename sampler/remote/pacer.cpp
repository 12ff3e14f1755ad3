// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pacer.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "sampler/remote/futex.h"

namespace pystrobe::remote {
namespace {

// Longer than any tick of the scheduler: who wakes so late is left no time by others, where it is.
constexpr Nanoseconds kStarved = std::chrono::milliseconds(20);
constexpr Nanoseconds kStaysFor = std::chrono::seconds(2);

}  // namespace

Pacer::Pacer() : tid_(gettid()) {
  // Fails where the kernel has more CPUs than fit: then any that it allows.
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) {
    std::memset(&allowed_, 0xff, sizeof allowed_);
  }
}

void Pacer::Wake() {
  woken_.store(1, std::memory_order_release);
  FutexWake(woken_);
}

bool Pacer::CanKeepOff(int cpu) {
  if (cpu < 0 || has_one_cpu()) return false;
  const std::lock_guard lock(mutex_);
  return kept_off_ != cpu && MonotonicNow() >= stays_until_;
}

void Pacer::KeepOff(int cpu) {
  if (cpu < 0 || has_one_cpu()) return;
  const std::lock_guard lock(mutex_);
  if (kept_off_ == cpu || MonotonicNow() < stays_until_) return;
  cpu_set_t others = allowed_;
  CPU_CLR(cpu, &others);
  if (sched_setaffinity(tid_, sizeof others, &others) == 0) {
    kept_off_ = cpu;
  } else {
    stays_until_ = MonotonicNow() + kStaysFor;
  }
}

void Pacer::Sleep(Nanoseconds until) {
  FutexWait(woken_, 0, until);
  woken_.exchange(0, std::memory_order_acquire);
  NoteLate(MonotonicNow() - until);
}

void Pacer::NoteLate(Nanoseconds late) {
  if (late < kStarved) return;
  const std::lock_guard lock(mutex_);
  stays_until_ = MonotonicNow() + kStaysFor;
  if (std::exchange(kept_off_, -1) >= 0) sched_setaffinity(tid_, sizeof allowed_, &allowed_);
}

}  // namespace pystrobe::remote
