// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ledger.h"

#include <algorithm>
#include <utility>

namespace pystrobe::remote {
namespace {

// Pauses are not yet in the run delay of the sample they belong to; each takes about half of this.
constexpr Nanoseconds kShortestSleep = std::chrono::microseconds(60);

Nanoseconds ToTime(uint64_t ns) { return Nanoseconds(static_cast<int64_t>(ns)); }

// The number of the last tick up to `time`, as if they came at equal distances.
uint64_t TickAt(Nanoseconds time, const Moment& first, const Moment& last) {
  const auto share = static_cast<double>((time - first.time).count()) /
                     static_cast<double>((last.time - first.time).count());
  const uint64_t ticks = last.tick - std::min(first.tick, last.tick);
  return first.tick + static_cast<uint64_t>(share * static_cast<double>(ticks));
}

constexpr uint8_t Flags(int bits) { return static_cast<uint8_t>(bits); }

}  // namespace

KernelAccount KernelAccount::OfNewThread(const SchedStat& stat, Nanoseconds unwatched) {
  KernelAccount account(stat);
  if (stat.cpu_ns <= static_cast<uint64_t>(unwatched.count())) account.accounted_.cpu_ns = 0;
  return account;
}

KernelAccount::Charge KernelAccount::Settle(const SchedStat& stat) {
  const Charge charge{
      stat.cpu_ns - std::min(stat.cpu_ns, accounted_.cpu_ns),
      stat.run_delay_ns - std::min(stat.run_delay_ns, accounted_.run_delay_ns),
      stat.switches - std::min(stat.switches, accounted_.switches),
  };
  // Each by itself: a thread that waits for a CPU is charged delay only.
  accounted_.cpu_ns = std::max(accounted_.cpu_ns, stat.cpu_ns);
  accounted_.run_delay_ns = std::max(accounted_.run_delay_ns, stat.run_delay_ns);
  accounted_.switches = std::max(accounted_.switches, stat.switches);
  return charge;
}

uint64_t Timeline::RoomUntil(Nanoseconds time) const {
  return static_cast<uint64_t>(std::max<int64_t>(0, (time - end_.time).count()));
}

void Timeline::Add(const Moment& end, uint64_t cpu_ns, StackId stack, uint8_t flags) {
  const Nanoseconds time = std::max(end.time, end_.time + Nanoseconds(1));
  Sample& sample = samples_->emplace_back();
  sample.time_ns = (time - start_).count();
  sample.wall_ns = static_cast<uint64_t>((time - end_.time).count());
  sample.cpu_ns = cpu_ns;
  sample.thread = thread_;
  sample.stack = stack;
  // A tick that came to nothing, in whose place another look is made, may have been counted.
  const uint64_t tick = std::max(end.tick, end_.tick);
  sample.count = static_cast<uint32_t>(tick - end_.tick);
  sample.flags = flags;
  end_ = {tick, time};
}

void Lifetime::Miss(const Moment& moment) {
  if (!missed_) missed_ = moment;
}

Moment Lifetime::End() const {
  if (!missed_ || missed_->time <= alive_.time) return alive_;
  return {alive_.tick + (missed_->tick - alive_.tick) / 2,
          alive_.time + (missed_->time - alive_.time) / 2};
}

ThreadLedger::ThreadLedger(const Timeline& timeline, const Tick& now,
                           const std::optional<SchedStat>& stat, const KernelAccount& account)
    : timeline_(timeline), account_(account) {
  const uint64_t tick_before = now.number > 0 ? now.number - 1 : 0;
  timeline_.SetEnd({tick_before, now.previous + (now.time - now.previous) / 2});
  life_.See({tick_before, now.previous});
  if (stat) {
    last_ = *stat;
    SeeAlive(now);
  } else {
    Miss(now);
  }
}

void ThreadLedger::BeginAt(Nanoseconds now, const std::optional<SchedStat>& stat) {
  timeline_.SetStart(now);
  timeline_.SetEnd({0, now});
  life_.See({0, now});
  last_time_ = now;
  unseen_cpu_ns_ = total_run_delay_ = 0;
  was_running_ = false;
  if (stat) account_.SkipTo(*stat);
}

bool ThreadLedger::SeeStill(const Tick& now, const SchedStat& stat) {
  SeeAlive(now);
  if (!off_cpu_ || !SameRun(stat, last_)) return false;
  still_ = Moment::At(now);
  return true;
}

bool ThreadLedger::AwakeSinceLast(const Finding& found) const {
  const SchedStat& stat = found.task.stat;
  const uint64_t awake = stat.cpu_ns - last_.cpu_ns + stat.run_delay_ns - last_.run_delay_ns;
  return ToTime(awake) + kShortestSleep >= found.tick.time - last_time_;
}

bool ThreadLedger::IsAwake(const Finding& found) const {
  return found.task.awake && (!found.task.unsure || AwakeSinceLast(found));
}

uint64_t ThreadLedger::Settle(const SchedStat& stat) {
  last_charge_ = account_.Settle(stat);
  total_run_delay_ += last_charge_.run_delay_ns;
  return last_charge_.cpu_ns;
}

void ThreadLedger::Take(Finding found) {
  const Tick& tick = found.tick;
  SeeAlive(tick);
  const bool awake = IsAwake(found);
  const bool ran = !SameRun(found.task.stat, last_);
  last_ = found.task.stat;
  last_time_ = tick.time;
  uint64_t cpu_ns = Settle(found.task.stat);
  // Idle until the tick before, as far as its CPU time allows.
  // (A new thread may be charged what it ran before it was found.)
  const Nanoseconds run = ToTime(ran ? cpu_ns : 0);
  Nanoseconds ran_from = tick.time - run - ToTime(ran ? last_charge_.run_delay_ns : 0);
  // Who was asleep and runs now woke at that time; of others no more is known than the ticks. (Nor
  // where the look is late because, it may be, a host took the CPUs away: what it took is neither
  // run nor delay.)
  const bool taken_away = tick.late() && tick.host_steals;
  const bool woke = off_cpu_ && ran && awake && !taken_away && tick.from() <= tick.previous;
  if (!woke) ran_from = std::min(tick.previous, tick.time - run);
  AddIdle({tick.number - 1, ran_from});
  AddWait();
  if (ran) cpu_ns -= AddGap(tick, cpu_ns, awake);
  cpu_ns = ShareOut(tick, cpu_ns, ran && awake);
  has_stack_ = true;
  stack_ = found.stack;
  standing_flags_ = found.flags & kStandingFlags;
  // A thread that was just taken off its CPU would have been charged something. A stack that was
  // not proved is looked at again.
  const bool sound = (found.flags & (kSampleMarked | kSampleIncomplete)) == 0;
  off_cpu_ = !ran && sound && (found.task.in_pause || !awake);
  if (off_cpu_) {  // the start of an idle run: grows until something happens
    still_ = Moment::At(tick);
    return;
  }
  if (was_running_) running_stack_ = stack_;
  if (cpu_ns > 0) found.flags |= kSampleOnCpu;
  if (tick.late()) found.flags |= kSampleLate;
  AddRun(found, cpu_ns);
}

uint64_t ThreadLedger::AddGap(const Tick& tick, uint64_t cpu_ns, bool awake) {
  const Nanoseconds from = tick.from();
  if (from <= tick.previous || from <= timeline_.end().time || !has_stack_) return 0;
  const auto after = static_cast<uint64_t>((tick.time - from).count());
  const uint64_t in_gap = awake ? cpu_ns - std::min(cpu_ns, after) : cpu_ns;
  timeline_.Add({tick.number - 1, from}, in_gap, kEmptyStack,
                Flags(kSampleUnseen | (in_gap > 0 ? kSampleOnCpu : 0)));
  was_running_ = false;
  return in_gap;
}

uint64_t ThreadLedger::ShareOut(const Tick& tick, uint64_t cpu_ns, bool running) {
  if (running) {
    cpu_ns += std::exchange(unseen_cpu_ns_, 0);
  } else {
    unseen_cpu_ns_ += was_running_ ? AddLastRun(tick, cpu_ns) : cpu_ns;
    cpu_ns = 0;
  }
  was_running_ = running;
  return cpu_ns;
}

uint64_t ThreadLedger::AddLastRun(const Tick& tick, uint64_t cpu_ns) {
  const uint64_t run = std::min(cpu_ns, timeline_.RoomUntil(tick.time));
  if (run == 0) return cpu_ns;
  const Moment& from = timeline_.end();
  Add({from.tick, from.time + ToTime(run)}, run,
      Flags((standing_flags_ & ~kSampleGil) | kSampleOnCpu));
  return cpu_ns - run;
}

// What it ran before the last tick is known by its CPU time only. That it held the lock is known of
// this tick: the lock's time must not come to more than there was.
void ThreadLedger::AddRun(const Finding& found, uint64_t cpu_ns) {
  const Tick& tick = found.tick;
  if ((found.flags & kSampleGil) != 0 && timeline_.end().time < tick.previous) {
    const auto interval = static_cast<uint64_t>((tick.time - tick.previous).count());
    const uint64_t in_tick = std::min(cpu_ns, interval);
    // It may have waited for a CPU until then.
    const int not_true_of_it = kSampleGil | (cpu_ns == in_tick ? kSampleOnCpu : 0);
    Add(Moment::Before(tick), cpu_ns - in_tick, Flags(found.flags & ~not_true_of_it));
    cpu_ns = in_tick;
  }
  Add(Moment::At(tick), cpu_ns, found.flags);
}

// It may have run after it was last known to stand still, and let go of the lock.
void ThreadLedger::AddIdle(const Moment& end) {
  const auto flags = Flags(standing_flags_ | kSampleIdle);
  const bool knows_lock = (flags & kSampleGil) == 0 || end.time <= still_.time;
  if (!knows_lock && still_.time > timeline_.end().time) Add(still_, 0, flags);
  if (end.time <= timeline_.end().time) return;
  const uint64_t number =
      off_cpu_ && end.time < still_.time ? TickAt(end.time, timeline_.end(), still_) : end.tick;
  Add({number, end.time}, 0, knows_lock ? flags : Flags(flags & ~kSampleGil));
}

// Off its CPU and not idle: it waited for one, where it was seen, with the lock if it had that.
void ThreadLedger::AddWait() {
  if (off_cpu_ && still_.time > timeline_.end().time) Add(still_, 0, standing_flags_);
}

void ThreadLedger::Flush() {
  if (off_cpu_) {
    AddIdle(still_);
  } else if (!has_stack_) {
    AddIdle(life_.last_seen());
  }
}

void ThreadLedger::Finish(const Tick& tick, bool lives) {
  if (lives && !gone()) {
    SeeAlive(tick);
  } else {
    Miss(tick);
  }
  AddIdle(life_.End());
  if (unseen_cpu_ns_ == 0) return;
  stack_ = running_stack_;
  const int unseen = stack_ == kEmptyStack ? kSampleUnseen : 0;
  Add(timeline_.end(), std::exchange(unseen_cpu_ns_, 0), Flags(kSampleOnCpu | unseen));
}

void ThreadLedger::Add(const Moment& end, uint64_t cpu_ns, uint8_t flags) {
  timeline_.Add(end, cpu_ns, stack_, has_stack_ ? flags : Flags(flags | kSampleUnseen));
}

}  // namespace pystrobe::remote
