// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/thread_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pystrobe::remote {
namespace {

// Pauses are not yet in the run delay of the sample they belong to; each takes about half of this.
// (At 10 kHz few sleeps between two looks are longer.)
constexpr Nanoseconds kShortestSleep = std::chrono::microseconds(60);

// A look that finds the thread running takes at least this part of what is left over, so that no
// more than about so many looks' worth is left when a recording ends.
constexpr uint64_t kUnseenParts = 128;

// So many intervals of CPU time are kept from looks that cannot tell whether the thread runs, for
// those that can.
constexpr uint64_t kReserve = 16;

Nanoseconds ToTime(uint64_t ns) { return Nanoseconds(static_cast<int64_t>(ns)); }
uint64_t ToNs(Nanoseconds time) { return static_cast<uint64_t>(time.count()); }

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
  return ToNs(std::max(Nanoseconds(0), time - end_.time));
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
  last_time_ = now.previous;
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
  looked_cpu_ns_ = 0;
  sure_ = doubtful_ = {};
  if (stat) account_.SkipTo(*stat);
}

bool ThreadLedger::SeeStill(const Tick& now, const SchedStat& stat) {
  SeeAlive(now);
  if (!off_cpu_ || !SameRun(stat, last_)) return false;
  still_ = Moment::At(now);
  return true;
}

void ThreadLedger::Settle(const SchedStat& stat) {
  last_charge_ = account_.Settle(stat);
  total_run_delay_ += last_charge_.run_delay_ns;
  unseen_cpu_ns_ += last_charge_.cpu_ns;
  looked_cpu_ns_ += last_charge_.cpu_ns;
}

bool ThreadLedger::HasRested(Nanoseconds time) const {
  const uint64_t in_use = last_charge_.cpu_ns + last_charge_.run_delay_ns;
  return ToTime(in_use) + kShortestSleep < time - last_time_;
}

void ThreadLedger::Take(Finding found) {
  const Tick& tick = found.tick;
  SeeAlive(tick);
  const bool ran = !SameRun(found.task.stat, last_);
  Settle(found.task.stat);
  const bool has_rested = HasRested(tick.time);
  const bool awake = found.task.awake && !(found.task.unsure && has_rested);
  last_ = found.task.stat;
  last_time_ = tick.time;
  if (ran) ran_ = tick.time;
  AddUnlooked(found, ran, has_rested);
  if (ran) AddGap(tick, awake);
  const bool first = !std::exchange(has_stack_, true);
  stack_ = found.stack;
  standing_flags_ = found.flags & kStandingFlags;
  if ((found.flags & kSampleGil) == 0) unlocked_stack_ = found.stack;
  // A thread that was just taken off its CPU would have been charged something. A stack that was
  // not proved is looked at again.
  const bool sound = (found.flags & (kSampleMarked | kSampleIncomplete)) == 0;
  off_cpu_ = !ran && sound && (found.task.in_pause || !awake);
  if (off_cpu_) {  // the start of an idle run: grows until something happens
    still_ = Moment::At(tick);
    return;
  }
  const uint64_t cpu_ns = TakeCpu(found, ClaimOf(found, awake, ran, has_rested), first);
  if (cpu_ns > 0) {
    found.flags |= kSampleOnCpu;
  } else {
    found.flags = Flags(found.flags & ~kSampleKernel);
  }
  if (tick.late()) found.flags |= kSampleLate;
  AddRun(found, cpu_ns);
}

ThreadLedger::Claim ThreadLedger::ClaimOf(const Finding& found, bool awake, bool ran,
                                          bool has_rested) const {
  if (!awake) return Claim::kNone;
  if (!found.task.stat.exact()) return Claim::kSure;
  if (!ran || found.task.on_cpu == OnCpu::kNo) return Claim::kNone;
  if (found.task.on_cpu == OnCpu::kYes) return Claim::kSure;
  // Who has the lock runs, unless others have its CPU: what it waits by now is in no charge yet.
  const bool waits = found.task.in_pause && has_rested;
  return (found.flags & kSampleGil) != 0 && !waits ? Claim::kSure : Claim::kDoubtful;
}

// (A new thread may be charged what it ran before it was found.)
void ThreadLedger::AddUnlooked(const Finding& found, bool ran, bool has_rested) {
  const Tick& tick = found.tick;
  const Nanoseconds run = ToTime(ran ? last_charge_.cpu_ns : 0);
  const Nanoseconds wait = ToTime(ran ? last_charge_.run_delay_ns : 0);
  const Nanoseconds ran_from = std::min(tick.previous, tick.time - run);
  const bool had_lock = !off_cpu_ && (standing_flags_ & kSampleGil) != 0;
  if (had_lock && has_rested && ran_from > timeline_.end().time) {
    // Who has the lock is looked at in every tick: it had let go.
    const StackId stack = (found.flags & kSampleGil) == 0 ? found.stack : unlocked_stack_;
    timeline_.Add({tick.number - 1, ran_from}, 0, stack,
                  Flags(stack == kEmptyStack ? kSampleUnseen : 0));
  }
  AddIdle({tick.number - 1, std::min(ran_from, tick.time - run - wait)});
  AddWait({tick.number - 1, ran_from});
}

void ThreadLedger::AddGap(const Tick& tick, bool awake) {
  const Nanoseconds from = tick.from();
  if (from <= tick.previous || from <= timeline_.end().time || !has_stack_) return;
  const uint64_t cpu_ns = last_charge_.cpu_ns;
  const uint64_t after = awake ? std::min(cpu_ns, ToNs(tick.time - from)) : 0;
  unseen_cpu_ns_ -= cpu_ns - after;
  looked_cpu_ns_ -= cpu_ns - after;
  timeline_.Add({tick.number - 1, from}, cpu_ns - after, kEmptyStack,
                Flags(kSampleUnseen | (cpu_ns > after ? kSampleOnCpu : 0)));
}

uint64_t ThreadLedger::TakeCpu(const Finding& found, Claim claim, bool first) {
  const Tick& tick = found.tick;
  if (claim == Claim::kNone) return 0;
  const uint64_t interval = ToNs(tick.time - tick.from());
  uint64_t room = timeline_.RoomUntil(tick.time);
  if (claim == Claim::kDoubtful) room = std::min(room, interval);
  uint64_t most = std::max(room, unseen_cpu_ns_ / kUnseenParts);
  if (claim == Claim::kDoubtful) {
    const uint64_t reserve = kReserve * interval;
    const auto fair = static_cast<uint64_t>(DoubtfulWeight() * static_cast<double>(room));
    most = std::min(std::max(fair, unseen_cpu_ns_ / kUnseenParts),
                    unseen_cpu_ns_ - std::min(unseen_cpu_ns_, reserve));
  } else if (first) {
    // Born half an interval ago for all that is known, it may have run for a whole one.
    most = unseen_cpu_ns_;
  }
  const uint64_t cpu_ns = std::min(unseen_cpu_ns_, most);
  unseen_cpu_ns_ -= cpu_ns;
  const Run run{stack_, (found.flags & kSampleKernel) != 0, room};
  (claim == Claim::kSure ? sure_ : doubtful_).Add(run, cpu_ns);
  return cpu_ns;
}

void ThreadLedger::Runs::Add(const Run& run, uint64_t cpu_ns) {
  room_ns += run.room;
  given_ns += cpu_ns;
  if (last.size() < kMostRuns) {
    last.push_back(run);
  } else {
    last[next++ % kMostRuns] = run;
  }
}

// What it ran before the last tick is known by its CPU time only. That it held the lock is known of
// this tick: the lock's time must not come to more than there was.
void ThreadLedger::AddRun(const Finding& found, uint64_t cpu_ns) {
  const Tick& tick = found.tick;
  if ((found.flags & kSampleGil) != 0 && timeline_.end().time < tick.previous) {
    const uint64_t interval = ToNs(tick.time - tick.previous);
    const uint64_t in_tick = std::min(cpu_ns, interval);
    // It may have waited for a CPU until then.
    const int not_true_of_it = kSampleGil | (cpu_ns == in_tick ? kSampleOnCpu | kSampleKernel : 0);
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

// Not idle: it waited for a CPU where it was seen. As long as it is known not to have run, with the
// lock if it had that.
void ThreadLedger::AddWait(const Moment& end) {
  if (off_cpu_ && still_.time > timeline_.end().time) Add(still_, 0, standing_flags_);
  if (end.time > timeline_.end().time) Add(end, 0, Flags(standing_flags_ & ~kSampleGil));
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
  SpreadRest();
}

void ThreadLedger::SpreadRest() {
  const double weight = DoubtfulWeight();
  std::vector<Part> doubtful;
  AddParts(doubtful_, weight, doubtful);
  std::vector<Part> all = doubtful;
  AddParts(sure_, 1, all);
  if (!doubtful.empty()) Spread(std::min(unseen_cpu_ns_, DueToDoubtful()), std::move(doubtful));
  Spread(unseen_cpu_ns_, std::move(all));
  if (unseen_cpu_ns_ == 0) return;
  timeline_.Add(timeline_.end(), std::exchange(unseen_cpu_ns_, 0), kEmptyStack,
                kSampleOnCpu | kSampleUnseen);
}

// A stack in the kernel, and outside, once.
void ThreadLedger::Spread(uint64_t cpu_ns, std::vector<Part> parts) {
  const auto what = [](const Part& part) { return std::pair(part.stack, part.in_kernel); };
  std::ranges::sort(parts, {}, what);
  double rest = 0;
  for (const Part& part : parts) rest += part.weight;
  for (auto at = parts.begin(); cpu_ns > 0 && at != parts.end();) {
    double weight = 0;
    const Part& part = *at;
    for (; at != parts.end() && what(*at) == what(part); ++at) weight += at->weight;
    const auto share =
        static_cast<uint64_t>(std::llround(weight / rest * static_cast<double>(cpu_ns)));
    const uint64_t given = std::min(cpu_ns, share);
    rest -= weight;
    cpu_ns -= given;
    unseen_cpu_ns_ -= given;
    if (given == 0) continue;
    timeline_.Add(timeline_.end(), given, part.stack,
                  Flags(kSampleOnCpu | (part.in_kernel ? kSampleKernel : 0)));
  }
}

void ThreadLedger::Replace(FunctionRef<StackId(StackId)> now) {
  stack_ = now(stack_);
  unlocked_stack_ = now(unlocked_stack_);
  for (Runs* runs : {&sure_, &doubtful_}) {
    for (Run& run : runs->last) run.stack = now(run.stack);
  }
}

double ThreadLedger::DoubtfulWeight() const {
  if (sure_.room_ns >= looked_cpu_ns_) return sure_.room_ns == 0 ? 1 : 0;
  const auto left = static_cast<double>(looked_cpu_ns_ - sure_.room_ns);
  return std::min(1.0, left / static_cast<double>(std::max<uint64_t>(doubtful_.room_ns, 1)));
}

uint64_t ThreadLedger::DueToDoubtful() const {
  const auto due = static_cast<uint64_t>(DoubtfulWeight() * static_cast<double>(doubtful_.room_ns));
  return due - std::min(due, doubtful_.given_ns);
}

void ThreadLedger::AddParts(const Runs& runs, double weight, std::vector<Part>& parts) {
  if (weight == 0) return;
  for (const Run& run : runs.last) {
    const auto room = static_cast<double>(std::max<uint64_t>(run.room, 1));
    parts.push_back({run.stack, run.in_kernel, weight * room});
  }
}

void ThreadLedger::Add(const Moment& end, uint64_t cpu_ns, uint8_t flags) {
  timeline_.Add(end, cpu_ns, stack_, has_stack_ ? flags : Flags(flags | kSampleUnseen));
}

}  // namespace pystrobe::remote
