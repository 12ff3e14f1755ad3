// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampled_thread.h"

#include <algorithm>
#include <utility>

#include "sampler/remote/rseq.h"

namespace pystrobe::remote {
namespace {

// How often the codes of a stack that stays are seen in use, so that the cache does not forget
// them.
constexpr Nanoseconds kSettledFor = std::chrono::seconds(1);

}  // namespace

SampledThread::SampledThread(RunContext& context, const PyThread& thread, KernelThread& kernel)
    : context_(context),
      thread_(thread),
      kernel_(kernel),
      state_{thread_},
      plan_(context.target.layout(), thread.tstate) {
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

bool SampledThread::SleepsDuring(CopyJob& job) {
  const auto stat = clock().Read();
  if (!stat) return false;
  looked_ = *stat;
  if (!clock().exact() || clock().Running()) return false;
  job.RunUnproved();
  return StoodStillSince();
}

void SampledThread::Prepare(CopyJob& job, GilReader* gil, ThreadCopy& copy) {
  job.memory = &context_.target.memory();
  job.layout = &context_.target.layout();
  job.gil = gil;
  job.codes = &context_.codes;
  const uint32_t generation = job.layout->interpreter.code_object_generation;
  job.generation_address = generation == pyabi::kAbsent ? 0 : thread_.interpreter + generation;
  job.locals = context_.locals;
  job.witness = Witness();
  job.awake_before = true;
  job.ahead_of_switch.reset();
  copy.plan = &plan_;
  job.threads.assign(1, &copy);
}

CpuWitness SampledThread::Witness() {
  if (auto offset = context_.target.info().rseq_offset) {
    return {thread_.pthread + static_cast<uint64_t>(*offset) + kRseqCpuId, -1,
            clock().schedstat_fd(), clock().syscall_fd()};
  }
  return {0, clock().stat_fd(), clock().schedstat_fd(), clock().syscall_fd()};
}

bool SampledThread::TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look,
                             Names names) {
  state_.has_frames = !copy_.frames.empty();
  current_ = kernel_.IsCurrent(state_, context_.target.layout(), copy_.memory);
  const size_t common = CountCommon(tick.time);
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
  if (!InternStack(common, tick.time)) found.flags |= kSampleIncomplete;
  found.stack = stack();
  has_stack_ = true;
  standing_flags_ = found.flags & kStandingFlags;
  copied_ = found.task.stat;
  if (current_) kernel_.ledger().Take(found);
  return true;
}

// Equal frames from the root on have equal stacks: only what changed is looked up.
size_t SampledThread::CountCommon(Nanoseconds now) {
  const std::vector<pyabi::RawFrame>& fresh = copy_.frames;
  const size_t most = std::min(fresh.size(), frames_.size());
  if (settled_epoch_ != context_.codes.epoch() || now >= settled_until_) {
    settled_ = 0;
    settled_until_ = now + kSettledFor;
  }
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

bool SampledThread::InternStack(size_t common, Nanoseconds now) {
  const std::vector<pyabi::RawFrame>& fresh = copy_.frames;
  // Where the copy does not reach the thread's first frame, what it holds is no root.
  const bool complete = copy_.status == pyabi::WalkStatus::kComplete;
  const StackId base = complete ? kEmptyStack : context_.codes.incomplete_stack();
  if (base != std::exchange(base_, base)) common = 0;
  path_.resize(common);
  StackId stack = common == 0 ? base : path_.back();
  const uint64_t unnamed = context_.codes.unnamed();
  hidden_.clear();
  for (size_t i = fresh.size() - common; i-- > 0;) {
    const auto frame = context_.codes.Resolve(fresh[i], now);
    if (!frame) {
      hidden_.push_back(i);
      continue;
    }
    stack = context_.tables.Push(stack, *frame);
    path_.push_back(stack);
  }
  frames_ = fresh;
  locals_ = std::move(copy_.locals);
  for (const size_t i : hidden_) frames_.erase(frames_.begin() + static_cast<std::ptrdiff_t>(i));
  return context_.codes.unnamed() == unnamed;
}

}  // namespace pystrobe::remote
