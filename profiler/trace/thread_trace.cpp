// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/thread_trace.h"

#include <new>
#include <utility>

namespace pystrobe::trace {
namespace {

bool HasFlag(const TraceWishes& wishes) { return wishes.cpu_time && SwitchFlag::Available(); }

// One that says yes has the clock read when there is no more trust, and not before.
SwitchFlag FlagFor(const TraceWishes& wishes) {
  return HasFlag(wishes) ? SwitchFlag::OfThisThread() : SwitchFlag::AlwaysSet();
}

Ticks TrustFor(const TraceWishes& wishes, const TickRate& rate) {
  if (!wishes.cpu_time) return ~Ticks{0};
  return rate.ToTicks(HasFlag(wishes) ? OffCpu::kLongestTrust : OffCpu::kTrustWithoutFlag);
}

constexpr char nobody = 0;
constexpr Key kNobody = &nobody;

}  // namespace

// The flag is set before the clock is read: what comes in between is seen the next time.
Ticks OffCpu::Look(Ticks& now) {
  flag_.Set();
  const Nanoseconds cpu = ThreadCpuNow();
  now = TickClock::Now();
  ++looks_;
  return SyncTo(now, cpu);
}

Ticks OffCpu::SyncTo(Ticks now, Nanoseconds cpu) {
  const auto passed = static_cast<double>(now - last_);
  const double used = static_cast<double>((cpu - last_cpu_).count()) * rate_->ticks_per_ns();
  // What is more than there was is carried on: to leave it out would make chance errors off-CPU
  // time.
  const double off = passed - used - carried_;
  const Ticks found = off > 0 ? static_cast<Ticks>(off) : 0;
  ticks_ += found;
  carried_ = std::max(-off, 0.0);
  Trust(now);
  last_cpu_ = cpu;
  return found;
}

Result<std::unique_ptr<ThreadTrace>> ThreadTrace::Begin(const ThreadStart& start,
                                                        std::span<const RunningCall> running,
                                                        KeyWatch& watch, const TickRate& rate,
                                                        const TraceWishes& wishes) {
  auto slots = LazyArray<Slot>::Make(kMostDepth + 1);
  if (!slots) return std::unexpected(slots.error());
  std::unique_ptr<ThreadTrace> trace(
      new ThreadTrace(start, *std::move(slots), watch, rate, wishes));
  trace->BeginRunning(running, start.at);
  return trace;
}

ThreadTrace::ThreadTrace(const ThreadStart& start, LazyArray<Slot> slots, KeyWatch& watch,
                         const TickRate& rate, const TraceWishes& wishes)
    : top_(slots.data()),
      last_running_(top_),
      off_cpu_(FlagFor(wishes), TrustFor(wishes, rate), start.at, start.cpu, rate),
      tree_(wishes.room),
      log_(wishes.timeline, start.tid, tree_, start.at),
      limit_(slots.data() + slots.capacity()),
      slots_(std::move(slots)),
      watch_(watch),
      max_depth_(wishes.max_depth),
      has_cpu_time_(wishes.cpu_time),
      tid_(start.tid),
      begin_(start.at) {
  *top_ = {&tree_.root(), begin_, kNobody, 0};
}

void ThreadTrace::BeginRunning(std::span<const RunningCall> running, Ticks begin) {
  for (const auto& [key, frame] : running) {
    if (top_ + 1 == limit_) break;
    CallNode* const node = tree_.ChildOf(
        *top_->node, key, [this](Key fresh) { return !tree_.IsFull() && Admits(fresh); });
    if (node != nullptr) {
      ++node->running;
      Open(top_[1], *node, begin, kNobody);
      if (log_.IsOn()) log_.Enter(*node, begin);
    }
    running_.push_back({frame, top_});
  }
  last_running_ = top_;
  SetLimit();
}

ThreadTrace::Slot* ThreadTrace::DepthLimit() {
  const auto room = static_cast<size_t>(slots_end() - last_running_) - 1;
  return max_depth_ == 0 || max_depth_ > room ? slots_end() : last_running_ + 1 + max_depth_;
}

void ThreadTrace::EndRunning(const void* frame) {
  auto kept = running_.end();
  while (kept != running_.begin() && kept[-1].frame != frame) --kept;
  if (kept == running_.begin() && frame != nullptr) return;
  running_.erase(kept, running_.end());
  Slot* const last = running_.empty() ? slots_.data() : running_.back().slot;
  Ticks now = TickClock::Now();
  Follow(now);
  LeaveDownTo(last + 1, now);
}

bool ThreadTrace::AdmitsNew(Key key) {
  const bool admits = watch_.Admits(key);
  if (!admits) memo_->refused[PlaceOf(key, Memo::kRefused)] = key;
  return admits;
}

// What calls it is the interpreter, which no exception of C++ may go through.
CallNode* ThreadTrace::Push(Key key) {
  try {
    return PushOrThrow(key);
  } catch (const std::bad_alloc&) {
    lacked_memory_ = true;
    PutBeyond(key);
    return &not_counted_;
  }
}

CallNode* ThreadTrace::PushOrThrow(Key key) {
  Slot* const slot = top_ + 1;
  if (slot == limit_) return PushTooDeep(key);
  const bool is_full = tree_.IsFull();
  CallNode* const node = tree_.ChildOf(
      *top_->node, key, [this, is_full](Key fresh) { return !is_full && Admits(fresh); });
  if (node == nullptr && is_full) return PushTooDeep(key);
  if (node == nullptr) {
    NotePassedOver();
    return nullptr;
  }
  Ticks now = TickClock::Now();
  Follow(now);
  Open(*slot, *node, now, key);
  if (log_.IsOn()) log_.Enter(*node, now);
  return node;
}

void ThreadTrace::EndSlot(Slot& slot, Ticks now) {
  Slot& caller = *(&slot - 1);
  const Ticks total = now - slot.begin;
  const Ticks off_cpu = std::exchange(slot.off_cpu, 0);
  caller.off_cpu += off_cpu;
  slot.node->total += total;
  // What is found out in this call may have been before it.
  slot.node->off_cpu += std::min(total, off_cpu);
  if (log_.IsOn()) log_.Leave(now);
}

bool ThreadTrace::LeaveTop() {
  Ticks now = TickClock::Now();
  Follow(now);
  EndSlot(*top_--, now);
  return true;
}

// No clock is read: its time is that of the innermost slot.
CallNode* ThreadTrace::PushTooDeep(Key key) {
  bool is_new = false;
  CallNode* const function =
      functions_too_deep_.ChildOf(functions_too_deep_.root(), key, [&](Key fresh) {
        is_new = true;
        return Admits(fresh);
      });
  if (function == nullptr) return nullptr;
  if (is_new) function->running = watch_.IsOfTheProgram(key) ? 0 : 1;  // a mark, no more
  PutBeyond(key);
  return function->running == 0 ? &too_deep_ : &not_counted_;
}

void ThreadTrace::PutBeyond(Key key) {
  // Leave is not to take the end of a function's deeper call for that of this one, nor is a deeper
  // call to be one of this one's.
  if (beyond_ == 0) top_->key = kNobody;
  limit_ = top_ + 1;
  if (Slot* const slot = SlotTooDeep(beyond_); slot != nullptr) slot->key = key;
  ++beyond_;
}

bool ThreadTrace::IsInnermostTooDeep(Key key) {
  if (beyond_ == 0) return false;
  const Slot* const slot = SlotTooDeep(beyond_ - 1);
  return slot == nullptr || slot->key == key;
}

// What ends unnoticed ends with its caller, as elsewhere.
bool ThreadTrace::LeaveTooDeep(Key key) {
  size_t i = beyond_;
  while (i > 0) {
    const Slot* const slot = SlotTooDeep(--i);
    if (slot != nullptr && slot->key != key) continue;
    EndTooDeep(i);
    return true;
  }
  return false;
}

void ThreadTrace::EndTooDeep(size_t left) {
  beyond_ = left;
  if (left > 0) return;
  CountTooDeep();
  if (top_ > last_running_) top_->key = top_->node->key;
  SetLimit();
}

void ThreadTrace::CountTooDeep() {
  const uint64_t calls = std::exchange(too_deep_.calls, 0);
  if (top_ + 1 == DepthLimit()) {
    top_->node->left_out += calls;
  } else {
    unplaced_ += calls;
  }
}

void ThreadTrace::LeaveDownTo(Slot* slot, Ticks now) {
  if (beyond_ > 0) EndTooDeep(0);
  for (; top_ >= slot; --top_) EndSlot(*top_, now);
  if (top_ >= last_running_) return;
  last_running_ = top_;
  SetLimit();
}

bool ThreadTrace::LeaveOutOfOrder(Key key) {
  // First: beyond what there is room for, what is innermost has anybody's key.
  if (IsRefused(key)) {
    NotePassedOver();
    return false;
  }
  if (IsInnermostTooDeep(key)) {
    EndTooDeep(beyond_ - 1);
    return true;
  }
  if (LeaveTooDeep(key)) return true;
  Slot* slot = top_;
  while (slot > slots_.data() && slot->node->key != key) --slot;
  if (slot == slots_.data()) {
    ++unmatched_;
    return true;
  }
  Ticks now = TickClock::Now();
  Follow(now);
  LeaveDownTo(slot, now);
  return true;
}

bool ThreadTrace::GoBackTo(const void* stack) {
  const auto found = other_stacks_.find(stack);
  if (found == other_stacks_.end()) {
    if (stack_ != nullptr || top_ == slots_.data()) return false;
    stack_ = stack;  // that of the calls that came before anybody asked
    return true;
  }
  Stack back = std::move(found.value());
  other_stacks_.erase(found);
  const Ticks now = LeaveStack();
  stack_ = stack;
  std::ranges::copy(back.slots, slots_.data() + 1);
  top_ = back.top;
  last_running_ = back.last_running;
  running_ = std::move(back.running);
  beyond_ = back.beyond;
  SetLimit();
  for (Slot* slot = slots_.data() + 1; slot <= top_; ++slot) {
    slot->begin = now;
    if (log_.IsOn()) log_.Enter(*slot->node, now);
  }
  return true;
}

void ThreadTrace::BeginStack(const void* stack, std::span<const RunningCall> running) {
  // To find out what runs may itself have called.
  if (IsOn(stack) || other_stacks_.contains(stack)) return;
  const Ticks now = LeaveStack();
  stack_ = stack;
  BeginRunning(running, now);
}

// Each of its calls has had its time so far, like a generator that waits.
Ticks ThreadTrace::LeaveStack() {
  Ticks now = TickClock::Now();
  Follow(now);
  if (beyond_ > 0) CountTooDeep();
  Slot* const first = slots_.data() + 1;
  Slot* const end = std::min(top_ + 1 + beyond_, slots_end());
  for (Slot* slot = top_; slot >= first; --slot) EndSlot(*slot, now);
  if (end > first || !running_.empty()) {
    other_stacks_.insert_or_assign(
        stack_, Stack{{first, end}, top_, last_running_, std::exchange(running_, {}), beyond_});
  }
  top_ = last_running_ = slots_.data();
  limit_ = slots_end();
  beyond_ = 0;
  return now;
}

void ThreadTrace::BeginLife(Key key, const void* frame) {
  if (top_->key != key) {
    lives_.erase(frame);  // of one that was there before
    return;
  }
  try {
    lives_.insert_or_assign(frame, Life{top_->node, top_->begin});
  } catch (const std::bad_alloc&) {
    lacked_memory_ = true;
  }
}

void ThreadTrace::EndLife(Key key, const void* frame) {
  const auto found = lives_.find(frame);
  if (found == lives_.end()) return;
  const auto [node, begin] = found->second;
  lives_.erase(found);
  if (node->key != key) return;
  ++node->finished;
  node->lifetime += TickClock::Now() - begin;
}

void ThreadTrace::End(Nanoseconds cpu) {
  end_ = TickClock::Now();
  if (has_cpu_time_) top_->off_cpu += off_cpu_.SyncTo(end_, cpu);
  LeaveDownTo(slots_.data() + 1, end_);
  if (has_cpu_time_) tree_.SettleCpu(end_ - begin_ - std::min(end_ - begin_, off_cpu_.ticks()));
  log_.Close();
  other_stacks_ = {};
  lives_ = {};
  memo_.reset();
  const auto given_back = std::move(slots_);
  top_ = last_running_ = limit_ = slots_.data();
}

uint64_t ThreadTrace::left_out() const {
  uint64_t calls = 0;
  for (const CallNode& node : tree_.nodes()) {
    if (node.key != nullptr) calls += node.left_out;
  }
  return calls;
}

}  // namespace pystrobe::trace
