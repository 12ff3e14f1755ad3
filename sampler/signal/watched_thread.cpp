// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/watched_thread.h"

#include <algorithm>
#include <utility>

#include "sampler/signal/captures.h"

namespace pystrobe::signals {
namespace {

// What is left at a thread's end belongs to what it did last, if it is no more than that.
constexpr int kRestPeriods = 2;

}  // namespace

WatchedThread::WatchedThread(RunContext& context, pid_t tid, Nanoseconds cpu,
                             std::unique_ptr<ThreadLook> look)
    : context_(context),
      tid_(tid),
      cpu_ns_(static_cast<uint64_t>(cpu.count())),
      path_(context.tables, context.codes),
      look_(std::move(look)) {}

Result<void> WatchedThread::Arm() {
  auto event = CpuEvent::Start(context_.source, tid_, context_.period);
  if (!event) return std::unexpected(event.error());
  lack_ = event->lack();
  event_.emplace(*std::move(event));
  look_->SetEvent(*event_);
  return {};
}

void WatchedThread::Begin(ThreadIndex index) {
  index_ = index;
  const auto cpu = CpuTimeOf(tid_);
  if (!cpu) return;
  const auto used = static_cast<uint64_t>(cpu->count());
  AddUnseen(MonotonicNow(), used - std::min(used, cpu_ns_));
}

void WatchedThread::SetStates(std::vector<Address> states) {
  if (states == states_) return;
  states_ = std::move(states);
  look_->SetStates(states_);
}

void WatchedThread::Drain() {
  for (auto record = look_->records().Front(); !record.empty(); record = look_->records().Front()) {
    Take(TakeApart(record));
    look_->records().Pop();
  }
}

void WatchedThread::Take(const RecordParts& record) {
  const RawSample& head = record.head;
  const Nanoseconds now(head.time_ns);
  fresh_.assign(record.frames.begin(), record.frames.end());
  fresh_.insert(fresh_.end(), frames_.end() - head.common, frames_.end());
  std::swap(fresh_, frames_);
  TakeCodes(record, now);

  const bool complete = head.status == pyabi::WalkStatus::kComplete;
  const bool named =
      context_.native == nullptr ? TakeStack(complete, now) : TakeParts(record, complete, now);
  has_stack_ = true;
  for (const pyabi::RawFrame& frame : record.frames) {
    const pyabi::CodeIdentity* identity = context_.codes.Lasting(frame.code);
    if (identity == nullptr) continue;
    const bool settled = context_.codes.IsSettled(frame.code);
    context_.known.Set(frame.code, {settled ? CodeKnowledge::kLasting : CodeKnowledge::kNamed,
                                    FingerprintOf(*identity)});
  }
  Count(record, complete && named);
  const auto flags = static_cast<uint8_t>((complete && named ? 0 : kSampleIncomplete) |
                                          (head.in_kernel ? kSampleKernel : 0));
  // Of the moment in which it was armed: a signal may have come first.
  const uint64_t used = head.cpu_ns - std::min(head.cpu_ns, cpu_ns_);
  const Sample sample = SampleAt(now, used, flags);
  if (context_.native == nullptr) {
    context_.samples.push_back(sample);
  } else {
    unsettled_.back().sample = sample;
    unsettled_.back().kernel_ns = WithoutSignal(head, used);
  }
  cpu_ns_ += used;
}

// Signals that are due in the kernel are not sent then.
uint64_t WatchedThread::WithoutSignal(const RawSample& head, uint64_t used) const {
  if (context_.source != CpuSource::kPerfUser || head.lost > 0) return 0;
  return used > head.period_ns + head.period_ns / 2 ? used - head.period_ns : 0;
}

bool WatchedThread::TakeStack(bool complete, Nanoseconds now) {
  const size_t common = path_.CountCommon(frames_, now);
  const bool named = path_.Take(frames_, common, complete, now);
  stack_ = path_.stack();
  return named;
}

bool WatchedThread::TakeParts(const RecordParts& record, bool complete, Nanoseconds now) {
  Unsettled& parts = unsettled_.emplace_back();
  parts.base = complete ? kEmptyStack : context_.codes.incomplete_stack();
  const uint64_t unnamed = context_.codes.unnamed();
  parts.frames = remote::NameFrames(context_.codes, context_.target.layout(), frames_, now);
  parts.instructions.assign(record.instructions.begin(), record.instructions.end());
  parts.instructions.insert(parts.instructions.end(), native_.end() - record.head.native_common,
                            native_.end());
  native_ = parts.instructions;
  native::StepResult end = record.head.native_end;
  if (HasStack(record.head)) end = context_.native->Complete(record, parts.instructions);
  parts.is_whole = end == native::StepResult::kOutermost;
  return context_.codes.unnamed() == unnamed;
}

bool WatchedThread::Settle() {
  if (unsettled_.empty()) return false;
  Unsettled& parts = unsettled_.front();
  const auto merged =
      context_.merger->Merge(parts.base, parts.frames, parts.instructions, parts.is_whole, runs_);
  context_.quality.native_cut += merged.result == native::MergeResult::kCut ? 1 : 0;
  context_.quality.native_unfit += merged.result == native::MergeResult::kUnfit ? 1 : 0;
  parts.sample.stack = stack_ = merged.stack;
  if (parts.kernel_ns > 0) {
    Sample in_kernel = parts.sample;
    in_kernel.cpu_ns = parts.kernel_ns;
    in_kernel.count = 0;
    in_kernel.flags |= kSampleKernel;
    context_.samples.push_back(in_kernel);
    parts.sample.cpu_ns -= parts.kernel_ns;
  }
  context_.samples.push_back(parts.sample);
  unsettled_.pop_front();
  return true;
}

void WatchedThread::TakeCodes(const RecordParts& record, Nanoseconds now) {
  seen_.clear();
  const CapturedMemory captured(record.captured);
  for (const FoundCode& found : record.codes) {
    seen_.push_back({found.code, found.identity, {}});
    if (captured.empty()) continue;
    const remote::Target& target = context_.target;
    auto info = pyabi::ReadCode(captured, target.layout(), target.info().code_type, found.code);
    if (info && info->identity == found.identity) seen_.back().info = std::move(info);
  }
  context_.codes.Update(seen_, record.head.generation, now);
  if (context_.codes.epoch() == context_.known_epoch) return;
  context_.known_epoch = context_.codes.epoch();
  context_.known.Clear(record.head.generation);
}

void WatchedThread::Count(const RecordParts& record, bool whole) {
  Quality& quality = context_.quality;
  const RawSample& head = record.head;
  quality.deadlines += 1 + head.lost;
  quality.lost += head.lost;
  quality.held_ns += head.handler_ns;
  quality.held_each.Add(head.handler_ns);
  quality.retries += head.tries;
  ++quality.taken;
  ++(whole ? quality.proved : quality.incomplete);
}

void WatchedThread::Finish(Nanoseconds now, std::optional<Nanoseconds> cpu) {
  const uint32_t lost = look_->TakeLost();
  context_.quality.deadlines += lost;
  context_.quality.lost += lost;
  if (!cpu) return;
  const auto used = static_cast<uint64_t>(cpu->count());
  const uint64_t rest = used - std::min(used, cpu_ns_);
  if (rest == 0) return;
  if (!has_stack_ || rest > static_cast<uint64_t>(kRestPeriods * context_.period.count())) {
    AddUnseen(now, rest);
    return;
  }
  Sample sample = SampleAt(now, rest, 0);
  sample.count = 0;
  context_.samples.push_back(sample);
  cpu_ns_ += rest;
}

void WatchedThread::AddUnseen(Nanoseconds now, uint64_t cpu_ns) {
  if (cpu_ns == 0) return;
  Sample sample = SampleAt(now, cpu_ns, kSampleUnseen);
  sample.stack = kEmptyStack;
  sample.count = 0;
  context_.samples.push_back(sample);
  cpu_ns_ += cpu_ns;
}

Sample WatchedThread::SampleAt(Nanoseconds now, uint64_t cpu_ns, uint8_t flags) const {
  Sample sample;
  sample.time_ns = (now - context_.start).count();
  sample.cpu_ns = cpu_ns;
  sample.thread = index_;
  sample.stack = stack_;
  sample.flags = static_cast<uint8_t>(flags | kSampleOnCpu);
  return sample;
}

}  // namespace pystrobe::signals
