// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tick_sampler.h"

#include <algorithm>

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
// More than a pause can cost: what a thread waited beyond it was not our doing.
constexpr Nanoseconds kContextSwitches = std::chrono::microseconds(50);

// PyThreadState._status.active (Include/cpython/pystate.h, 3.12+): the thread is attached.
constexpr uint32_t kStatusActive = 1U << 4;

}  // namespace

TickOutcome TickSampler::Take(const Tick& tick) {
  TickOutcome outcome;
  for (const auto& domain : threads_.domains()) {
    if (domain->threads.empty()) continue;
    if (domain->free_threaded()) {
      TakeFree(*domain, tick, outcome);
    } else {
      TakeLocked(*domain, tick, outcome);
    }
  }
  return outcome;
}

void TickSampler::TakeLocked(LockDomain& domain, const Tick& tick, TickOutcome& outcome) {
  SampledThread* subject = nullptr;
  PauseOutcome pause;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto gil = Peek(domain);
    if (!gil) return;
    subject = &ChooseSubject(domain, *gil, outcome);
    CollectChanged(domain, gil->switch_number != domain.switch_number, subject);
    if (others_.empty() && subject->off_cpu() && !subject->MayHaveRun()) {
      // Nobody ran: every stack is what it was.
      domain.switch_number = gil->switch_number;
      outcome.taken = true;
      return;
    }
    if (tries > 0) ++outcome.retries;
    if (TryCopy(domain, *subject, others_, pause)) break;
  }
  if (!pause.copied) {
    outcome.stale_threads = true;
    return;
  }
  Record(domain, *subject, others_, pause, tick, outcome);
  domain.switch_number = job_.gil_state.switch_number;
  domain.last_subject = subject;
}

void TickSampler::TakeFree(LockDomain& domain, const Tick& tick, TickOutcome& outcome) {
  CollectChanged(domain, true, nullptr);
  outcome.taken = true;
  for (SampledThread* subject : others_) {
    PauseOutcome pause;
    for (int tries = 0; tries < kMostTries; ++tries) {
      if (tries > 0) ++outcome.retries;
      if (TryCopy(domain, *subject, {}, pause)) break;
    }
    if (pause.copied) {
      Record(domain, *subject, {}, pause, tick, outcome);
    } else {
      outcome.stale_threads = true;
    }
  }
}

std::optional<GilState> TickSampler::Peek(LockDomain& domain) {
  if (domain.threads.size() == 1) {
    // Nobody to choose from; the copy itself brings the lock.
    return GilState{domain.threads.front()->id().tstate, 0, domain.switch_number};
  }
  requests_.clear();
  domain.gil.AppendRequest(requests_);
  if (!context_.target.memory().ReadAll(requests_)) return std::nullopt;
  return domain.gil.Decode();
}

SampledThread& TickSampler::ChooseSubject(LockDomain& domain, const GilState& gil,
                                          TickOutcome& outcome) const {
  SampledThread* subject = domain.Find(gil.last_holder);
  if (subject == nullptr && gil.last_holder != 0) outcome.stale_threads = true;
  if (subject == nullptr) subject = domain.last_subject;
  return subject != nullptr ? *subject : *domain.threads.front();
}

void TickSampler::CollectChanged(LockDomain& domain, bool switched, const SampledThread* subject) {
  others_.clear();
  const size_t count = domain.threads.size();
  const size_t most = domain.free_threaded() ? count : kMostOthers;
  for (SampledThread* thread : domain.threads) {
    if (thread == subject || thread->off_cpu() || others_.size() >= most) continue;
    if (thread->MayHaveRun()) others_.push_back(thread);
  }
  size_t checks = std::min(count, switched ? kChecksAfterSwitch : kChecksOtherwise);
  for (; checks > 0 && others_.size() < most; --checks) {
    domain.next_check = (domain.next_check + 1) % count;
    SampledThread* thread = domain.threads[domain.next_check];
    if (thread == subject || !thread->off_cpu()) continue;
    if (thread->MayHaveRun()) others_.push_back(thread);
  }
}

bool TickSampler::TryCopy(LockDomain& domain, SampledThread& subject,
                          std::span<SampledThread* const> others, PauseOutcome& pause) {
  job_.memory = &context_.target.memory();
  job_.layout = &context_.target.layout();
  job_.gil = domain.free_threaded() ? nullptr : &domain.gil;
  job_.codes = &context_.codes;
  job_.witness = subject.Witness();
  job_.threads.assign(1, &subject.copy());
  for (SampledThread* other : others) job_.threads.push_back(&other->copy());

  pause = pauser_.Copy(job_, subject.id().tid, subject.last_cpu());
  if (!pause.copied) return false;
  if (job_.subject_cpu >= 0) subject.set_last_cpu(job_.subject_cpu);
  if (pauser_.mode_in_use() == PauseMode::kNone) return true;
  if (!pause.held || subject.copy().status != WalkStatus::kComplete) return false;
  const GilState& gil = job_.gil_state;
  return domain.free_threaded() || gil.locked != 1 || gil.last_holder == subject.id().tstate;
}

void TickSampler::Record(LockDomain& domain, SampledThread& subject,
                         std::span<SampledThread* const> others, const PauseOutcome& pause,
                         const Tick& tick, TickOutcome& outcome) {
  context_.codes.Update(job_.identities, tick.time);
  const bool all_frozen =
      !domain.free_threaded() && pause.held && job_.gil_state.HeldBy(subject.id().tstate);
  TakeStack(subject, pause.held, pause.held, tick, outcome);
  for (SampledThread* other : others) {
    TakeStack(*other, all_frozen || other->StoodStillSince(), false, tick, outcome);
  }
  outcome.taken = true;
  outcome.held += std::min(Nanoseconds(static_cast<int64_t>(subject.last_run_delay())),
                           pause.held_for + kContextSwitches);
}

void TickSampler::TakeStack(SampledThread& thread, bool proved, bool paused, const Tick& tick,
                            TickOutcome& outcome) {
  ThreadCopy& copy = thread.copy();
  if (!proved) pyabi::TrimToExecuting(copy.memory, context_.target.layout(), copy.frames);
  uint8_t flags = 0;
  if (HoldsLock(thread)) flags |= kSampleGil;
  if (!proved) {
    flags |= kSampleMarked;
    outcome.marked = true;
  }
  if (copy.status != WalkStatus::kComplete) {
    flags |= kSampleIncomplete;
    outcome.incomplete = true;
  }
  thread.TakeCopy(tick, flags, paused);
  if (thread.gone()) outcome.stale_threads = true;
}

bool TickSampler::HoldsLock(SampledThread& thread) const {
  if (job_.gil != nullptr) return job_.gil_state.HeldBy(thread.id().tstate);
  uint32_t status = thread.copy().memory.ValueOr0<uint32_t>(
      thread.id().tstate + context_.target.layout().thread.status);
  return (status & kStatusActive) != 0;
}

}  // namespace pystrobe::remote
