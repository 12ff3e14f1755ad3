// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/tick_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "profiler/base/scoped_fd.h"

namespace pystrobe::trace {
namespace {

// The kernel takes it only where it found it invariant and the same on all CPUs, and gives it up
// where it turns out not to be.
bool KernelTrustsTsc() {
  const ScopedFd file(open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                           O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t size = file.valid() ? read(file.get(), text, sizeof text) : 0;
  // kvm-clock and Hyper-V's page are scaled from the same counter, but may be offset when a virtual
  // machine moves.
  return size > 0 && std::string_view(text, static_cast<size_t>(size)).starts_with("tsc");
}

}  // namespace

const bool TickClock::uses_tsc_ = KernelTrustsTsc();

// The pair whose reads were closest together of a few: nobody came in between.
TickRate::Pair TickRate::ReadPair() {
  constexpr int kTries = 5;
  Pair best{};
  Ticks closest = ~Ticks{0};
  for (int i = 0; i < kTries; ++i) {
    const Ticks before = TickClock::Now();
    const Nanoseconds time = MonotonicNow();
    const Ticks after = TickClock::Now();
    if (after - before >= closest) continue;
    closest = after - before;
    best = {before + (after - before) / 2, time};
  }
  return best;
}

TickRate TickRate::Measure() {
  constexpr Nanoseconds kEnough = std::chrono::milliseconds(1);
  TickRate rate(ReadPair());
  while (MonotonicNow() - rate.first_.time < kEnough) __builtin_ia32_pause();
  rate.Refine();
  return rate;
}

void TickRate::Refine() {
  const Pair now = ReadPair();
  ticks_per_ns_ = static_cast<double>(now.ticks - first_.ticks) /
                  static_cast<double>((now.time - first_.time).count());
}

}  // namespace pystrobe::trace
