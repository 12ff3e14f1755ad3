// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/thread_trace.h"

#include <utility>

namespace pystrobe::trace {
namespace {

// Without a flag the clock is asked so often at most: half a microsecond each time.
constexpr Nanoseconds kBetweenLooks = std::chrono::microseconds(50);

}  // namespace

// The flag is set before the clock is read: what comes in between is seen the next time.
Ticks OffCpu::Look(Ticks now) {
  if (!has_flag_ && rate_->ToTime(now - last_) < kBetweenLooks) return now;
  flag_.Set();
  const Nanoseconds cpu = ThreadCpuNow();
  const Ticks then = TickClock::Now();
  SyncTo(then, cpu);
  ++looks_;
  return then;
}

void OffCpu::SyncTo(Ticks now, Nanoseconds cpu) {
  const auto passed = static_cast<double>(now - last_);
  const double used = static_cast<double>((cpu - last_cpu_).count()) * rate_->ticks_per_ns();
  if (used < passed) ticks_ += static_cast<Ticks>(passed - used);
  last_ = now;
  last_cpu_ = cpu;
}

Result<std::unique_ptr<ThreadTrace>> ThreadTrace::Begin(const ThreadStart& start,
                                                        std::span<const RunningCall> running,
                                                        KeyWatch& watch, const TickRate& rate,
                                                        ChunkTaker* timeline) {
  auto slots = LazyArray<Slot>::Make(kMostDepth + 1);
  if (!slots) return std::unexpected(slots.error());
  std::unique_ptr<ThreadTrace> trace(
      new ThreadTrace(start, *std::move(slots), watch, rate, timeline));
  trace->BeginRunning(running);
  return trace;
}

ThreadTrace::ThreadTrace(const ThreadStart& start, LazyArray<Slot> slots, KeyWatch& watch,
                         const TickRate& rate, ChunkTaker* timeline)
    : top_(slots.data()),
      last_running_(top_),
      off_cpu_(SwitchFlag::OfThisThread(), SwitchFlag::Available(), start.at, start.cpu, rate),
      log_(timeline, start.tid, tree_, start.at),
      limit_(slots.data() + slots.capacity()),
      slots_(std::move(slots)),
      watch_(watch),
      tid_(start.tid),
      begin_(start.at) {
  *top_ = {&tree_.root(), begin_, 0};
  static const char kNobody = 0;
  deepest_.key = &kNobody;
}

void ThreadTrace::BeginRunning(std::span<const RunningCall> running) {
  for (const auto& [key, frame] : running) {
    if (top_ + 1 == limit_) break;
    CallNode* const node =
        tree_.ChildOf(*top_->node, key, [this](Key fresh) { return Admits(fresh); });
    if (node != nullptr) {
      ++node->running;
      *++top_ = {node, begin_, 0};
      if (log_.IsOn()) log_.Enter(*node, begin_);
    }
    running_.push_back({frame, top_});
  }
  last_running_ = top_;
}

void ThreadTrace::EndRunning(const void* frame) {
  auto kept = running_.end();
  while (kept != running_.begin() && kept[-1].frame != frame) --kept;
  if (kept == running_.begin() && frame != nullptr) return;
  running_.erase(kept, running_.end());
  last_running_ = running_.empty() ? slots_.data() : running_.back().slot;
  Ticks now = TickClock::Now();
  off_cpu_.Follow(now);
  LeaveDownTo(last_running_ + 1, now);
}

bool ThreadTrace::AdmitsNew(Key key) {
  const bool admits = watch_.Admits(key);
  if (!admits) refused_[RefusedPlace(key)] = key;
  return admits;
}

CallNode* ThreadTrace::PushTooDeep(Key key) {
  if (IsRefused(key)) return nullptr;
  ++too_deep_;
  // What leaves the innermost slot has another key from now on, so that Leave does not take it.
  if (beyond_++ == 0) covered_ = std::exchange(top_->node, &deepest_);
  return &deepest_;
}

void ThreadTrace::LeaveDownTo(Slot* slot, Ticks now) {
  for (; top_ >= slot; --top_) Charge(*top_, now);
}

bool ThreadTrace::LeaveOutOfOrder(Key key) {
  if (IsRefused(key)) return false;
  if (beyond_ > 0) {
    if (--beyond_ == 0) top_->node = covered_;
    return true;
  }
  Slot* slot = top_;
  while (slot > slots_.data() && slot->node->key != key) --slot;
  if (slot == slots_.data()) {
    ++unmatched_;
    return true;
  }
  Ticks now = TickClock::Now();
  off_cpu_.Follow(now);
  LeaveDownTo(slot, now);
  return true;
}

void ThreadTrace::End(Nanoseconds cpu) {
  end_ = TickClock::Now();
  off_cpu_.SyncTo(end_, cpu);
  if (std::exchange(beyond_, 0) > 0) top_->node = covered_;
  LeaveDownTo(slots_.data() + 1, end_);
  log_.Close();
}

}  // namespace pystrobe::trace
