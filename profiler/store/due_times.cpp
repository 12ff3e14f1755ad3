// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/due_times.h"

#include <algorithm>

namespace pystrobe::store {
namespace {

constexpr int64_t kNsPerUs = 1000;

}  // namespace

void DueTimes::BeginBlock() {
  drawn_ = 0;
  const size_t gone = due_us_.size() - std::min(due_us_.size(), kMostKept);
  due_us_.erase(due_us_.begin(), due_us_.begin() + static_cast<std::ptrdiff_t>(gone));
}

bool DueTimes::Add(const DeadlineSeries& series) {
  if (series.period_ns < 1 || series.period_ns > kMostPeriodNs) return false;
  if (series.last_ns < 0 || series.last_ns > kMostTimeNs) return false;
  const auto begin_us = static_cast<uint64_t>(series.last_ns / kNsPerUs);
  while (!due_us_.empty() && due_us_.back() < begin_us && Draw()) {
  }
  while (!due_us_.empty() && due_us_.back() >= begin_us) due_us_.pop_back();
  due_us_.push_back(begin_us);
  series_ = series;
  return true;
}

uint64_t DueTimes::FirstAfter(uint64_t us) {
  if (due_us_.empty() || us < due_us_.front()) return us;
  while (due_us_.back() <= us) {
    if (!Draw()) return us;
  }
  return *std::upper_bound(due_us_.begin(), due_us_.end(), us);
}

bool DueTimes::Draw() {
  if (drawn_ == kMostDrawn || series_.last_ns > kMostTimeNs) return false;
  ++drawn_;
  due_us_.push_back(static_cast<uint64_t>(series_.Draw() / kNsPerUs));
  return true;
}

}  // namespace pystrobe::store
