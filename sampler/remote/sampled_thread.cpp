// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampled_thread.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sampler/remote/native_stacks.h"
#include "sampler/remote/rseq.h"

namespace pystrobe::remote {
namespace {

// What a thread does that sleeps for longer takes a small part of its time, and each look at one
// that sleeps costs us some ten microseconds.
constexpr Nanoseconds kLongSleep = std::chrono::milliseconds(100);

}  // namespace

SampledThread::SampledThread(RunContext& context, const PyThread& thread, KernelThread& kernel)
    : context_(context),
      thread_(thread),
      kernel_(kernel),
      state_{thread_},
      plan_(context.target.layout(), thread.tstate),
      path_(context.tables, context.codes) {
  kernel_.Add(&state_);
  copy_.plan = &plan_;
  if (auto stat = ReadTaskStat(context.target.pid(), thread.tid)) last_cpu_ = stat->processor;
}

bool SampledThread::MayHaveRun(const Tick& now) {
  ThreadLedger& ledger = kernel_.ledger();
  auto stat = clock().Read();
  if (!stat) {
    Miss(now);
    return false;
  }
  looked_ = *stat;
  // Not what the kernel says, but what it said last: nothing is certain.
  if (!clock().exact() || clock().unknown()) {
    ledger.SeeAlive(now);
    return true;
  }
  // The thread may have been looked at with another interpreter's stack since this one's was taken.
  const bool still = ledger.SeeStill(now, looked_);
  return !still || !has_stack_ || !SameRun(copied_, looked_);
}

bool SampledThread::StoodStillSince() {
  if (!clock().exact() || clock().Running()) return false;
  auto stat = clock().Read();
  return stat && SameRun(*stat, looked_);
}

bool SampledThread::MayWakeSoon(const Tick& now) const {
  return !gone() && kernel_.ledger().RanSince(now.time - kLongSleep);
}

void SampledThread::Prepare(CopyJob& job, GilReader* gil, ThreadCopy& copy) {
  job.memory = &context_.target.memory();
  job.layout = &context_.target.layout();
  job.gil = gil;
  job.codes = &context_.codes;
  // Made now, if there is none: the program may enter its first one before the copy.
  job.regions = context_.target.pid() == getpid() ? &pyabi::Regions::OfThisProcess() : nullptr;
  job.generation_address = GenerationAddress();
  job.holders = nullptr;
  job.locals = context_.locals;
  job.native = context_.native != nullptr;
  job.tid = thread_.tid;
  job.thread_pointer = thread_.pthread;
  job.stopped = job.shares_cpu = false;
  job.witness = Witness();
  job.awake_before = true;
  job.woken_for = false;
  job.ahead_of_switch.reset();
  job.stat_before.reset();
  copy.plan = &plan_;
  copy.watch = {};
  job.threads.assign(1, &copy);
}

void SampledThread::LookBefore(CopyJob& job) {
  job.stat_before = clock().Read();
  job.awake_before = clock().Running();
  copy_.watch = Watch(job.awake_before, job.stat_before);
}

void SampledThread::PrepareAlong(CopyJob& job) {
  copy_.watch = Watch(clock().Running(), looked_);
  job.threads.push_back(&copy_);
}

TaskWatch SampledThread::Watch(bool awake, const std::optional<SchedStat>& stat) {
  return {thread_.tid, clock().schedstat_fd(), clock().syscall_fd(), RseqCpuId(), awake, stat};
}

CpuWitness SampledThread::Witness() {
  const Address rseq_cpu_id = RseqCpuId();
  return {rseq_cpu_id, rseq_cpu_id == 0 ? clock().stat_fd() : -1, clock().schedstat_fd(),
          clock().syscall_fd()};
}

Address SampledThread::RseqCpuId() const {
  const auto offset = context_.target.info().rseq_offset;
  return offset ? thread_.pthread + static_cast<uint64_t>(*offset) + kRseqCpuId : 0;
}

Address SampledThread::GenerationAddress() const {
  const uint32_t generation = context_.target.layout().interpreter.code_object_generation;
  return generation == pyabi::kAbsent ? 0 : thread_.interpreter + generation;
}

// Nothing is opened for it here: this is not the thread that does.
std::optional<LockHolders::Holder> SampledThread::AsHolder() {
  const Address rseq_cpu_id = RseqCpuId();
  if (rseq_cpu_id == 0) return std::nullopt;
  return LockHolders::Holder{
      &copy_, {.rseq_cpu_id = rseq_cpu_id}, GenerationAddress(), thread_.tid, thread_.pthread};
}

bool SampledThread::TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look,
                             Names names) {
  state_.has_frames = !copy_.frames.empty();
  current_ = kernel_.IsCurrent(state_, context_.target.layout(), copy_.memory);
  const size_t common = path_.CountCommon(copy_.frames, tick.time);
  const std::span changed(copy_.frames.data(), copy_.frames.size() - common);
  if (names == Names::kAll && !context_.codes.CanName(changed, tick.time)) return false;
  Finding found{.tick = tick, .flags = flags};
  if (look) {
    found.task = *look;
  } else if (auto stat = clock().Read()) {
    found.task = {*stat, clock().Running()};
  } else {
    Miss(tick);
    return true;
  }
  if (!TakeStack(common, tick.time)) found.flags |= kSampleIncomplete;
  locals_ = std::move(copy_.locals);
  found.stack = stack();
  has_stack_ = true;
  standing_flags_ = found.flags & kStandingFlags;
  copied_ = found.task.stat;
  if (current_) kernel_.ledger().Take(found);
  return true;
}

bool SampledThread::TakeStack(size_t common, Nanoseconds now) {
  const bool complete = copy_.status == pyabi::WalkStatus::kComplete;
  if (context_.native == nullptr) {
    const bool named = path_.Take(copy_.frames, common, complete, now);
    stack_ = path_.stack();
    return named;
  }
  // Another interpreter's on that thread is in no sample.
  if (!current_) return true;
  const uint64_t unnamed = context_.codes.unnamed();
  auto frames = NameFrames(context_.codes, context_.target.layout(), copy_.frames, now);
  stack_ = context_.native->Add(index(), complete ? kEmptyStack : context_.codes.incomplete_stack(),
                                std::move(frames), copy_.native.Release());
  return context_.codes.unnamed() == unnamed;
}

}  // namespace pystrobe::remote
