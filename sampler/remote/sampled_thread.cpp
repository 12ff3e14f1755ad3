// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampled_thread.h"

#include <algorithm>
#include <utility>

#include "sampler/remote/rseq.h"

namespace pystrobe::remote {
namespace {

// What stays true of a thread for as long as it does not run.
constexpr uint8_t kStandingFlags = kSampleMarked | kSampleIncomplete | kSampleGil;

bool SameRun(const SchedStat& a, const SchedStat& b) {
  return a.cpu_ns == b.cpu_ns && a.switches == b.switches;
}

}  // namespace

SampledThread::SampledThread(RunContext& context, const PyThread& thread, ThreadIndex index,
                             const Tick& now, AccountedTime& accounted)
    : context_(context),
      thread_(thread),
      index_(index),
      plan_(context.target.layout(), thread.tstate),
      clock_(context.target.pid(), thread.tid),
      emitted_until_(now.previous),
      emitted_tick_(now.number > 0 ? now.number - 1 : 0) {
  copy_.plan = &plan_;
  if (auto stat = clock_.Read()) {
    last_ = *stat;
  } else {
    gone_ = true;
  }
  if (accounted == nullptr) accounted = std::make_shared<SchedStat>(last_);
  accounted_ = accounted;
  if (auto stat = ReadTaskStat(context.target.pid(), thread.tid)) last_cpu_ = stat->processor;
}

bool SampledThread::MayHaveRun() {
  auto stat = clock_.Read();
  if (!stat) {
    gone_ = true;
    return false;
  }
  looked_ = *stat;
  return !off_cpu_ || !clock_.exact() || !SameRun(looked_, last_);
}

bool SampledThread::StoodStillSince() {
  if (!clock_.exact() || clock_.Running()) return false;
  auto stat = clock_.Read();
  return stat && SameRun(*stat, looked_);
}

CpuWitness SampledThread::Witness() {
  if (auto offset = context_.target.info().rseq_offset) {
    return {thread_.pthread + static_cast<uint64_t>(*offset) + kRseqCpuId, -1,
            clock_.schedstat_fd(), clock_.syscall_fd()};
  }
  return {0, clock_.stat_fd(), clock_.schedstat_fd(), clock_.syscall_fd()};
}

void SampledThread::TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look) {
  auto stat = look ? look->stat : clock_.Read();
  if (!stat) {
    gone_ = true;
    return;
  }
  const bool awake = look ? look->awake : clock_.Running();
  const uint64_t cpu_ns = stat->cpu_ns - std::min(stat->cpu_ns, accounted_->cpu_ns);
  last_run_delay_ = stat->run_delay_ns - std::min(stat->run_delay_ns, accounted_->run_delay_ns);
  total_run_delay_ += last_run_delay_;
  // What another interpreter on this kernel thread accounted for may be newer than this look.
  if (stat->cpu_ns >= accounted_->cpu_ns) *accounted_ = *stat;
  const bool ran = !SameRun(*stat, last_);
  last_ = *stat;
  // Idle until the tick before, as far as its CPU time allows.
  const Nanoseconds ran_from = std::min(tick.previous, tick.time - Nanoseconds(cpu_ns));
  if (emitted_tick_ + 1 < tick.number && ran_from > emitted_until_) {
    Emit(ran_from, 0, tick.number - 1, static_cast<uint8_t>(standing_flags_ | kSampleIdle));
  }
  const uint64_t seen_cpu_ns = ShareOut(tick, cpu_ns, ran && awake);
  if (!InternStack(tick.time)) flags |= kSampleIncomplete;
  has_stack_ = true;
  standing_flags_ = flags & kStandingFlags;
  // A thread that was just taken off its CPU would have been charged something. A stack that was
  // not proved is looked at again.
  const bool sound = (flags & (kSampleMarked | kSampleIncomplete)) == 0;
  off_cpu_ = !ran && sound && ((look && look->in_pause) || !awake);
  if (off_cpu_) return;  // the start of an idle run: grows until something happens
  if (was_running_) running_stack_ = stack_;
  if (seen_cpu_ns > 0) flags |= kSampleOnCpu;
  if (tick.late) flags |= kSampleLate;
  EmitRun(tick, seen_cpu_ns, flags);
}

// The CPU time that goes to the stack seen now. A thread that is seen asleep did not use any there:
// if it was seen running before, it went on until it fell asleep; else nobody saw what it ran, and
// the time goes to the next stack that is seen running. Looks come at random, so stacks get such
// time in proportion to their own.
uint64_t SampledThread::ShareOut(const Tick& tick, uint64_t cpu_ns, bool running) {
  if (running) {
    cpu_ns += std::exchange(unseen_cpu_ns_, 0);
  } else {
    unseen_cpu_ns_ += was_running_ ? EmitLastRun(tick, cpu_ns) : cpu_ns;
    cpu_ns = 0;
  }
  was_running_ = running;
  return cpu_ns;
}

// Returns the CPU time that does not fit between the last sample and now.
uint64_t SampledThread::EmitLastRun(const Tick& tick, uint64_t cpu_ns) {
  const auto room =
      static_cast<uint64_t>(std::max<int64_t>(0, (tick.time - emitted_until_).count()));
  const uint64_t run = std::min(cpu_ns, room);
  if (run == 0) return cpu_ns;
  const auto flags = static_cast<uint8_t>((standing_flags_ & ~kSampleGil) | kSampleOnCpu);
  Emit(emitted_until_ + Nanoseconds(static_cast<int64_t>(run)), run, emitted_tick_, flags);
  return cpu_ns - run;
}

// What it ran before the last tick is known by its CPU time only. That it held the lock is known of
// this tick: the lock's time must not come to more than there was.
void SampledThread::EmitRun(const Tick& tick, uint64_t cpu_ns, uint8_t flags) {
  if ((flags & kSampleGil) != 0 && emitted_until_ < tick.previous) {
    const auto interval = static_cast<uint64_t>((tick.time - tick.previous).count());
    const uint64_t in_tick = std::min(cpu_ns, interval);
    Emit(tick.previous, cpu_ns - in_tick, tick.number - 1,
         static_cast<uint8_t>(flags & ~kSampleGil));
    cpu_ns = in_tick;
  }
  Emit(tick.time, cpu_ns, tick.number, flags);
}

void SampledThread::Flush(const Tick& tick) {
  if (emitted_tick_ >= tick.number) return;
  Emit(tick.time, 0, tick.number, static_cast<uint8_t>(standing_flags_ | kSampleIdle));
}

void SampledThread::Finish(const Tick& tick) {
  Flush(tick);
  if (unseen_cpu_ns_ == 0) return;
  if (running_stack_ != kEmptyStack) stack_ = running_stack_;
  Emit(emitted_until_, std::exchange(unseen_cpu_ns_, 0), emitted_tick_, kSampleOnCpu);
}

void SampledThread::Emit(Nanoseconds end, uint64_t cpu_ns, uint64_t tick_number, uint8_t flags) {
  if (end <= emitted_until_) end = emitted_until_ + Nanoseconds(1);
  Sample sample;
  sample.time_ns = (end - context_.start).count();
  sample.wall_ns = static_cast<uint64_t>((end - emitted_until_).count());
  sample.cpu_ns = cpu_ns;
  sample.thread = index_;
  sample.stack = stack_;
  sample.count = static_cast<uint32_t>(tick_number - emitted_tick_);
  sample.flags = flags;
  context_.samples.push_back(sample);
  emitted_until_ = end;
  emitted_tick_ = tick_number;
}

// Equal frames from the root on have equal stacks: only what changed is looked up.
size_t SampledThread::CountCommon() {
  const std::vector<pyabi::RawFrame>& fresh = copy_.frames;
  const size_t most = std::min(fresh.size(), frames_.size());
  if (settled_epoch_ != context_.codes.epoch()) settled_ = 0;
  settled_epoch_ = context_.codes.epoch();
  size_t common = 0;
  while (common < most) {
    const pyabi::RawFrame& frame = fresh[fresh.size() - 1 - common];
    if (frame != frames_[frames_.size() - 1 - common]) break;
    if (common >= settled_ && !context_.codes.IsSettled(frame.code)) break;
    ++common;
  }
  settled_ = common;
  return common;
}

bool SampledThread::InternStack(Nanoseconds now) {
  const std::vector<pyabi::RawFrame>& fresh = copy_.frames;
  const size_t common = CountCommon();
  path_.resize(common);
  stack_ = common == 0 ? kEmptyStack : path_.back();
  const uint64_t unnamed = context_.codes.unnamed();
  hidden_.clear();
  for (size_t i = fresh.size() - common; i-- > 0;) {
    const auto frame = context_.codes.Resolve(fresh[i], now);
    if (!frame) {
      hidden_.push_back(i);
      continue;
    }
    stack_ = context_.tables.Push(stack_, *frame);
    path_.push_back(stack_);
  }
  frames_ = fresh;
  locals_ = std::move(copy_.locals);
  for (size_t i : hidden_) frames_.erase(frames_.begin() + static_cast<std::ptrdiff_t>(i));
  return context_.codes.unnamed() == unnamed;
}

}  // namespace pystrobe::remote
