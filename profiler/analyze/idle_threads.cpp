// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/idle_threads.h"

namespace pystrobe::analyze {
namespace {

constexpr uint64_t kEnough = 100;

}  // namespace

bool HardlyRan(const Weights& total, uint64_t range_ns) {
  // What a thread used after its last look is charged when it is gone: of one that lives for a few
  // looks the kernel's figure is mostly missing. So being seen at work counts as well, and so few
  // looks prove no thread idle that was not there all the time.
  const auto seen = [&](uint64_t samples) {
    return samples > 0 && samples >= total.samples / kEnough;
  };
  const bool came_or_went = total.wall_ns < range_ns - range_ns / 10;
  if (came_or_went && total.samples < kEnough) return false;
  return total.cpu_ns < total.wall_ns / kEnough && !seen(total.cpu_samples) &&
         !seen(total.gil_samples);
}

void MarkIdle(std::span<ThreadProfile> threads, uint64_t range_ns) {
  uint64_t count = 0;
  uint64_t used_ns = 0;
  for (ThreadProfile& thread : threads) {
    thread.idle = HardlyRan(thread.total, range_ns);
    if (!thread.idle) continue;
    ++count;
    used_ns += thread.total.cpu_ns;
  }
  const uint64_t limit_ns = range_ns / kEnough;
  if (used_ns <= limit_ns) return;
  for (ThreadProfile& thread : threads) {
    thread.idle = thread.idle && thread.total.cpu_ns < limit_ns / count;
  }
}

}  // namespace pystrobe::analyze
