// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_upkeep.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kRefreshInterval = std::chrono::milliseconds(500);
// A microsecond each time, which is much where nothing is paused and looks take five.
constexpr Nanoseconds kListCheckInterval = std::chrono::milliseconds(1);
// Listing thousands of threads takes milliseconds: one part in this many of the time goes into it.
constexpr int kRefreshShare = 100;
constexpr int kStaleRefreshShare = 10;  // while threads are known to be missing

}  // namespace

ThreadUpkeep::ThreadUpkeep(RunContext& context, ThreadTable& threads)
    : context_(context), threads_(threads), sleepers_(context, threads) {}

Result<void> ThreadUpkeep::Begin(const Tick& tick) {
  if (auto listed = threads_.Refresh(tick); !listed) return listed;
  sleepers_.Take(tick);
  next_refresh_ = tick.time + kRefreshInterval;
  return {};
}

void ThreadUpkeep::BeginAt(Nanoseconds start) {
  threads_.BeginAt(start);
  all_known_ = start;
}

bool ThreadUpkeep::DoDue(Nanoseconds now, const Tick& tick, bool stale) {
  stale |= LacksThreads(now);
  if (now >= (stale ? next_stale_refresh_ : next_refresh_) && !Refresh(now, tick)) return false;
  threads_.UpdateNewNames(now);
  return true;
}

bool ThreadUpkeep::LacksThreads(Nanoseconds now) {
  if (now < next_list_check_) return false;
  next_list_check_ = now + kListCheckInterval;
  if (threads_.LacksThreads()) return true;
  all_known_ = now;
  return false;
}

bool ThreadUpkeep::Refresh(Nanoseconds now, const Tick& tick) {
  const Nanoseconds begin = ThreadCpuNow();
  Tick found = tick;
  found.previous = std::min(found.previous, std::exchange(all_known_, now));
  // Lists that made no sense this time will the next; only the end of the process is final.
  std::ignore = threads_.Refresh(found);
  sleepers_.Take(tick);
  const Nanoseconds cost = ThreadCpuNow() - begin;
  next_refresh_ = now + std::max(kRefreshInterval, cost * kRefreshShare);
  next_stale_refresh_ = now + cost * kStaleRefreshShare;
  return context_.target.StillThere();
}

}  // namespace pystrobe::remote
