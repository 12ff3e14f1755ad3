// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tick_sampler.h"

#include <algorithm>
#include <span>

namespace pystrobe::remote {
namespace {

using pyabi::WalkStatus;

constexpr int kMostTries = 8;
// Each thread copied along lengthens the pause by a microsecond or a few.
constexpr size_t kMostOthers = 16;
// Looks at idle threads in one tick: many after the lock changed hands, a few otherwise (a thread
// may run without ever taking the lock).
constexpr size_t kChecksAfterSwitch = 64;
constexpr size_t kChecksOtherwise = 8;

// PyThreadState._status.active (Include/cpython/pystate.h, 3.12+): the thread is attached.
constexpr uint32_t kStatusActive = 1U << 4;

}  // namespace

TickSampler::~TickSampler() {
  // A probe must not write into jobs that are gone.
  if (started_) Finish();
}

void TickSampler::Start(const Tick& tick) {
  tick_ = tick;
  outcome_ = {};
  look_count_ = 0;
  started_ = true;
  for (const auto& domain : threads_.domains()) {
    if (domain->threads.empty()) continue;
    if (domain->free_threaded()) {
      StartFree(*domain);
    } else {
      StartLocked(*domain);
    }
  }
}

TickOutcome TickSampler::Finish() {
  auto looks = std::span(looks_).first(look_count_);
  for (auto& look : looks) Complete(*look);
  // Interpreters may share a kernel thread: its CPU time goes to the one that holds its lock.
  auto holds = [this](const std::unique_ptr<Look>& look) {
    return HoldsLock(look->job, *look->subject);
  };
  std::stable_partition(looks.begin(), looks.end(), holds);
  for (auto& look : looks) {
    if (look->copied) Record(*look);
  }
  started_ = false;
  return outcome_;
}

void TickSampler::StartLocked(LockDomain& domain) {
  Look& look = NewLook(domain);
  if (!Choose(look)) {
    --look_count_;
  } else if (!pauser_.Busy(look.subject->last_cpu())) {
    Begin(look);
  }
}

void TickSampler::StartFree(LockDomain& domain) {
  CollectChanged(domain, true, nullptr, running_);
  if (running_.empty()) outcome_.taken = true;
  for (SampledThread* thread : running_) {
    Look& look = NewLook(domain);
    look.subject = thread;
    // The others wait for their turn on that CPU, in Complete.
    if (!pauser_.Busy(thread->last_cpu())) Begin(look);
  }
}

TickSampler::Look& TickSampler::NewLook(LockDomain& domain) {
  if (look_count_ == looks_.size()) looks_.push_back(std::make_unique<Look>());
  Look& look = *looks_[look_count_++];
  look.domain = &domain;
  look.subject = nullptr;
  look.others.clear();
  look.begun = look.copied = false;
  look.held = {};
  return look;
}

bool TickSampler::Choose(Look& look) {
  LockDomain& domain = *look.domain;
  auto gil = Peek(domain);
  if (!gil) return false;
  look.subject = &ChooseSubject(domain, *gil);
  CollectChanged(domain, gil->switch_number != domain.switch_number, look.subject, look.others);
  if (!look.others.empty() || !look.subject->off_cpu() || look.subject->MayHaveRun()) return true;
  // Nobody ran: every stack is what it was.
  domain.switch_number = gil->switch_number;
  outcome_.taken = true;
  return false;
}

void TickSampler::Begin(Look& look) {
  CopyJob& job = look.job;
  job.memory = &context_.target.memory();
  job.layout = &context_.target.layout();
  job.gil = look.domain->free_threaded() ? nullptr : &look.domain->gil;
  job.codes = &context_.codes;
  const uint32_t generation = job.layout->interpreter.code_object_generation;
  job.generation_address =
      generation == pyabi::kAbsent ? 0 : look.subject->id().interpreter + generation;
  job.locals = context_.locals;
  job.prove = pauser_.mode_in_use() != PauseMode::kNone;
  job.witness = look.subject->Witness();
  if (!job.prove) job.witness.rseq_cpu_id = 0;
  job.awake_before = look.subject->clock().Running();
  job.threads.assign(1, &look.subject->copy());
  look.other_looks.clear();
  for (SampledThread* other : look.others) {
    job.threads.push_back(&other->copy());
    look.other_looks.push_back(other->LookNow());
  }
  look.ticket = pauser_.Begin(job, look.subject->id().tid, look.subject->last_cpu());
  look.begun = true;
}

void TickSampler::Complete(Look& look) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (!look.begun) Begin(look);
    pauser_.Finish(look.ticket, look.job);
    look.begun = false;
    ++look.held.copies;
    look.held.copying += look.ticket.outcome.held_for;
    look.held.disturbed |= look.job.descheduled;
    if (look.job.subject_cpu >= 0) look.subject->set_last_cpu(look.job.subject_cpu);
    if (Good(look)) break;
    if (tries + 1 == kMostTries) break;
    ++outcome_.retries;
    if (!look.domain->free_threaded() && !Choose(look)) return;
  }
  look.copied = look.ticket.outcome.copied && !IsHalfDone(look);
  if (look.copied) return;
  outcome_.stale_threads = true;
  // The stack of a thread that has just ended is not missed.
  if (look.subject->clock().Read()) outcome_.failed = true;
}

bool TickSampler::IsHalfDone(const Look& look) const {
  const WalkStatus status = look.job.threads.front()->status;
  return look.ticket.outcome.held &&
         (status == WalkStatus::kIncomplete || status == WalkStatus::kBroken);
}

bool TickSampler::Good(const Look& look) const {
  const PauseOutcome& pause = look.ticket.outcome;
  if (pauser_.mode_in_use() == PauseMode::kNone) return pause.copied;
  const WalkStatus status = look.job.threads.front()->status;
  // What is cut for its length will be again.
  const bool whole = status == WalkStatus::kComplete || status == WalkStatus::kMissing;
  if (!pause.held || !whole) return false;
  const GilState& gil = look.job.gil_state;
  return gil.locked != 1 || gil.last_holder == look.subject->id().tstate;
}

void TickSampler::Record(Look& look) {
  const CopyJob& job = look.job;
  const bool held = look.ticket.outcome.held;
  context_.codes.Update(job.identities, job.generation, tick_.time);
  // A thread stopped by ptrace stood still wherever it was last seen.
  const bool all_frozen =
      !look.domain->free_threaded() &&
      (job.AllFrozen() || (held && job.gil_state.HeldBy(look.subject->id().tstate)));
  TakeStack(look, *look.subject, held, job.subject_look);
  for (size_t i = 0; i < look.others.size(); ++i) {
    SampledThread& other = *look.others[i];
    TakeStack(look, other, all_frozen || other.StoodStillSince(), look.other_looks[i]);
  }
  outcome_.taken = true;
  outcome_.held += HeldFor(look);
  look.domain->switch_number = job.gil_state.switch_number;
  look.domain->last_subject = look.subject;
}

Nanoseconds TickSampler::HeldFor(Look& look) {
  switch (pauser_.mode_in_use()) {
    case PauseMode::kNone:
      return {};
    // A stopped thread does not wait for a CPU: run_delay knows nothing of it.
    case PauseMode::kPtrace:
      return look.held.copying;
    default:
      break;
  }
  if (look.subject->clock().exact()) {
    look.held.waited = Nanoseconds(static_cast<int64_t>(look.subject->last_run_delay()));
  }
  return held_time_.Estimate(look.held);
}

void TickSampler::TakeStack(const Look& look, SampledThread& thread, bool proved,
                            const std::optional<TaskLook>& seen) {
  ThreadCopy& copy = thread.copy();
  if (!proved) pyabi::TrimToExecuting(copy.memory, context_.target.layout(), copy.frames);
  // Memory of a thread that has ended, most likely: no stack at all.
  if (!proved && !context_.codes.CanName(copy.frames, tick_.time)) {
    outcome_.failed = outcome_.stale_threads = true;
    return;
  }
  uint8_t flags = HoldsLock(look.job, thread) ? kSampleGil : 0;
  if (!proved) {
    flags |= kSampleMarked;
    outcome_.marked = true;
  }
  if (copy.status != WalkStatus::kComplete) flags |= kSampleIncomplete;
  thread.TakeCopy(tick_, flags, seen);
  if (thread.gone()) outcome_.stale_threads = true;
  if ((thread.standing_flags() & kSampleIncomplete) != 0) outcome_.incomplete = true;
}

bool TickSampler::HoldsLock(const CopyJob& job, SampledThread& thread) const {
  if (job.gil != nullptr) return job.gil_state.HeldBy(thread.id().tstate);
  uint32_t status = thread.copy().memory.ValueOr0<uint32_t>(thread.id().tstate +
                                                            context_.target.layout().thread.status);
  return (status & kStatusActive) != 0;
}

std::optional<GilState> TickSampler::Peek(LockDomain& domain) {
  if (domain.threads.size() == 1) {
    // Nobody to choose from; the copy itself brings the lock.
    return GilState{domain.threads.front()->id().tstate, 0, domain.switch_number};
  }
  requests_.clear();
  domain.gil.AppendRequest(GilReader::kAfter, requests_);
  if (!context_.target.memory().ReadAll(requests_)) return std::nullopt;
  return domain.gil.Decode(GilReader::kAfter);
}

SampledThread& TickSampler::ChooseSubject(LockDomain& domain, const GilState& gil) {
  SampledThread* subject = domain.Find(gil.last_holder);
  if (subject == nullptr && gil.last_holder != 0) outcome_.stale_threads = true;
  if (subject == nullptr) subject = domain.last_subject;
  return subject != nullptr ? *subject : *domain.threads.front();
}

void TickSampler::CollectChanged(LockDomain& domain, bool switched, const SampledThread* subject,
                                 std::vector<SampledThread*>& changed) {
  changed.clear();
  const size_t count = domain.threads.size();
  const size_t most = domain.free_threaded() ? count : kMostOthers;
  for (SampledThread* thread : domain.threads) {
    if (thread == subject || thread->off_cpu() || changed.size() >= most) continue;
    if (thread->MayHaveRun()) changed.push_back(thread);
  }
  size_t checks = std::min(count, switched ? kChecksAfterSwitch : kChecksOtherwise);
  for (; checks > 0 && changed.size() < most; --checks) {
    domain.next_check = (domain.next_check + 1) % count;
    SampledThread* thread = domain.threads[domain.next_check];
    if (thread == subject || !thread->off_cpu()) continue;
    if (thread->MayHaveRun()) changed.push_back(thread);
  }
}

}  // namespace pystrobe::remote
