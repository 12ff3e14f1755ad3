// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tick_sampler.h"

#include <algorithm>
#include <span>
#include <utility>

namespace pystrobe::remote {
namespace {

using pyabi::WalkStatus;

constexpr int kMostTries = 8;

// Looks ahead: few wake-ups of the pacer are left with that many, and deep stacks are not kept so
// many times over.
constexpr size_t kMostAhead = 16;
constexpr size_t kMostBytesAhead = size_t{256} << 10;
// Where the lock changed hands meanwhile, what is looked at in place of those looks is what runs a
// moment later than they should have been: what runs briefly after a change would be missed. So
// once that has happened, no more than one in so many may.
constexpr size_t kCalmAfterChange = 64;

}  // namespace

TickSampler::~TickSampler() {
  // A probe must not write into jobs that are gone.
  EndAhead();
  if (!started_) return;
  for (auto& look : std::span(looks_).first(look_count_)) {
    if (look->begun) pauser_.Finish(look->ticket, look->job);
  }
}

void TickSampler::Start(const Tick& tick) {
  tick_ = tick;
  outcome_ = {.time = tick.time, .first = tick.time};
  asked_ = tick.time;
  has_time_ = false;
  chooser_.Begin();
  look_count_ = 0;
  context_.files.CloseLent();
  started_ = true;
  calm_before_ = std::exchange(calm_looks_, 0);
  StartLooks();
  ahead_most_ = look_count_ == 1 ? MostAhead(*looks_.front()) : 0;
}

void TickSampler::StartLooks() {
  for (const auto& domain : threads_.domains()) {
    if (domain->threads.empty()) continue;
    if (chooser_.SharesCopies(*domain)) {
      StartLocked(*domain);
    } else {
      StartEach(*domain);
    }
  }
}

size_t TickSampler::MostAhead(const Look& look) const {
  const LockDomain& domain = *look.domain;
  // Under another lock, and without one, any thread may run at any time.
  if (threads_.domains().size() > 1) return 0;
  if (domain.free_threaded() && domain.threads.size() > 1) return 0;
  const bool chosen = look.begun && look.others.empty() && look.subject == domain.last_subject;
  if (!chosen || context_.locals || bytes_copied_ > kMostBytesAhead) return 0;
  return calm_before_ < calm_needed_ ? 0 : std::min(calm_before_, kMostAhead);
}

bool TickSampler::StartAhead(Nanoseconds at) {
  if (ahead_count_ >= ahead_most_) return false;
  if (ahead_count_ == ahead_.size()) ahead_.push_back(std::make_unique<AheadLook>());
  const Look& now = *looks_.front();
  auto& [look, copy] = *ahead_[ahead_count_];
  Reset(look, *now.domain, now.subject);
  look.switch_number = now.switch_number;
  look.subject->Prepare(look.job, now.domain->lock(), copy);
  look.job.ahead_of_switch = now.switch_number;
  if (!pauser_.BeginAhead(look.job, look.subject->last_cpu(), at, look.ticket)) return false;
  look.begun = true;
  ++ahead_count_;
  return true;
}

size_t TickSampler::EndAhead() {
  const size_t made = std::exchange(ahead_count_, 0) - pauser_.EndAhead();
  if (made == 0) return 0;
  for (size_t i = 0; i <= made; ++i) {
    EndCopy(Made(i));
    if (Made(i).job.LockChangedHands()) calm_needed_ = kCalmAfterChange;
  }
  chooser_.NoteMadeAhead();
  started_ = false;
  return made;
}

TickOutcome TickSampler::FinishMade(size_t i, const Tick& tick) {
  tick_ = tick;
  outcome_ = {.time = tick.time, .first = tick.time};
  calm_before_ = std::exchange(calm_looks_, 0);
  Look& look = Made(i);
  if (i > 0) {
    std::swap(look.subject->copy(), ahead_[i - 1]->copy);
    look.job.threads.front() = &look.subject->copy();
  }
  Record(look);
  outcome_.stale_threads |= chooser_.stale_threads();
  return outcome_;
}

TickOutcome TickSampler::Finish() {
  auto looks = std::span(looks_).first(look_count_);
  for (auto& look : looks) Complete(*look);
  // Interpreters may share a kernel thread: its CPU time goes to the one that holds its lock.
  auto holds = [](const std::unique_ptr<Look>& look) { return look->job.SubjectHoldsLock(); };
  std::stable_partition(looks.begin(), looks.end(), holds);
  for (auto& look : looks) {
    if (!look->copied) continue;
    SetTime(look->job.began);
    Record(*look);
  }
  started_ = false;
  outcome_.stale_threads |= chooser_.stale_threads();
  return outcome_;
}

void TickSampler::StartLocked(LockDomain& domain) {
  Look& look = NewLook(domain, nullptr);
  look.follows_lock = true;
  if (!Choose(look)) {
    --look_count_;
  } else {
    BeginIfFree(look);
  }
}

void TickSampler::StartEach(LockDomain& domain) {
  const auto chosen = chooser_.ChooseEach(domain, tick_, running_);
  if (!chosen) return;
  const SampledThread* had_lock = nullptr;
  for (SampledThread* thread : running_) {
    if (thread == had_lock) continue;
    Look& look = NewLook(domain, thread);
    look.switch_number = chosen->switch_number;
    look.follows_lock = thread == chosen->holder;
    BeginIfFree(look);
    if (look.follows_lock && look.begun) had_lock = domain.Find(look.job.tstate());
  }
  if (running_.empty()) outcome_.taken = true;
}

// The others wait for their turn on that CPU, in Complete.
void TickSampler::BeginIfFree(Look& look) {
  if (!pauser_.Busy(look.subject->last_cpu())) Begin(look);
}

TickSampler::Look& TickSampler::NewLook(LockDomain& domain, SampledThread* subject) {
  if (look_count_ == looks_.size()) looks_.push_back(std::make_unique<Look>());
  Look& look = *looks_[look_count_++];
  Reset(look, domain, subject);
  return look;
}

void TickSampler::Reset(Look& look, LockDomain& domain, SampledThread* subject) {
  look.domain = &domain;
  look.subject = subject;
  look.others.clear();
  look.ticket = {};
  look.begun = look.copied = look.was_awake = false;
  look.follows_lock = look.turned = look.has_asleep = false;
  look.tries = 0;
  look.held = {};
}

bool TickSampler::Choose(Look& look) {
  const auto chosen = chooser_.Choose(*look.domain, tick_, look.others);
  if (!chosen) return false;
  look.subject = chosen->subject;
  look.switch_number = chosen->switch_number;
  if (!chosen->may_have_run) outcome_.taken = true;
  return chosen->may_have_run;
}

void TickSampler::Begin(Look& look) {
  CopyJob& job = look.job;
  look.subject->Prepare(job, look.domain->lock(), look.subject->copy());
  look.subject->LookBefore(job);
  // Later that thread may have had a look of its own.
  if (look.follows_lock && (look.tries == 0 || chooser_.SharesCopies(*look.domain))) {
    job.holders = look.domain;
  }
  job.alone = threads_.domains().size() == 1 &&
              (chooser_.SharesCopies(*look.domain) || running_.size() == 1);
  for (SampledThread* other : look.others) other->PrepareAlong(job);
  look.begun = true;
  const Nanoseconds at = look.tries == 0 ? tick_.at : Nanoseconds{};
  // One that is asked for early is looked at when its time has come.
  if (at <= tick_.time) {
    look.was_awake |= job.awake_before;
    if (CopyAsleep(look)) return;
  } else {
    look.has_asleep = CopyBeforeItWakes(look);
  }
  look.ticket = pauser_.Begin(job, look.subject->last_cpu(), at);
}

bool TickSampler::CopyAsleep(Look& look) {
  CopyJob& job = look.job;
  if (pauser_.mode_in_use() != PauseMode::kPtrace || job.awake_before) return false;
  if (!job.RunAsleep()) return false;
  job.threads.front()->plan->Confirm();
  // It has gone to sleep since: to take that for what it did would leave out what runs briefly.
  if (look.was_awake && job.subject_look) job.subject_look->awake = true;
  look.ticket = {nullptr, {.copied = job.read_ok, .held = job.read_ok, .held_for = {}}};
  return true;
}

bool TickSampler::CopyBeforeItWakes(Look& look) {
  if (pauser_.mode_in_use() != PauseMode::kPreempt || look.job.awake_before) return false;
  // Others would be copied with it, and proved by its standing still.
  if (!look.others.empty() || look.job.witness.rseq_cpu_id == 0) return false;
  look.subject->Prepare(look.asleep, look.domain->lock(), look.asleep_copy);
  if (!look.asleep.RunAsleep()) return false;
  if (look.asleep.subject_cpu >= 0) look.subject->set_last_cpu(look.asleep.subject_cpu);
  return true;
}

void TickSampler::TakeAsItSlept(Look& look) {
  if (!std::exchange(look.has_asleep, false)) return;
  const CopyJob& job = look.job;
  const bool slept_here = look.asleep.subject_cpu == job.own_cpu;
  const bool is_elsewhere = job.read_ok && job.subject_cpu >= 0 && job.subject_cpu != job.own_cpu;
  if (job.StoodStill() || !slept_here || !is_elsewhere) return;
  if (job.tstate() != look.asleep.tstate() || !look.asleep.IsWhole()) return;
  look.asleep.began = job.began;
  std::swap(look.job, look.asleep);
  std::swap(look.subject->copy(), look.asleep_copy);
  look.job.threads.front() = &look.subject->copy();
  look.ticket.outcome.held = true;
}

void TickSampler::Complete(Look& look) {
  for (int tries = 1;; ++tries) {
    if (!look.begun) Begin(look);
    EndCopy(look);
    chooser_.SeekHolder(*look.domain, look.job.gil_state);
    if (Good(look) || tries == kMostTries) break;
    ++outcome_.retries;
    RecordWhoLetGo(look);
    if (!look.ticket.outcome.held) chooser_.NoteIfGone(*look.subject, tick_);
    if (chooser_.SharesCopies(*look.domain) && !ChooseAgain(look)) return;
  }
  look.copied = look.ticket.outcome.copied && !IsHalfDone(look);
  if (look.copied) return;
  outcome_.held += HeldFor(look, std::nullopt);
  outcome_.stale_threads = true;
  // The stack of a thread that has just ended is not missed.
  if (look.subject->clock().Read()) outcome_.failed = true;
}

bool TickSampler::ChooseAgain(Look& look) {
  SampledThread* const before = look.subject;
  const bool chosen = Choose(look);
  if (chosen && look.subject == before) return true;
  SampledThread* const now = std::exchange(look.subject, before);
  Settle(look);
  look.subject = now;
  look.was_awake = false;
  return chosen;
}

void TickSampler::TurnTo(Look& look, SampledThread& subject) {
  if (&subject == look.subject) return;
  if (look.tries > 0) Settle(look);
  std::erase(look.others, &subject);
  if (std::ranges::count(look.job.threads, &look.subject->copy()) > 0) {
    look.others.push_back(look.subject);
  }
  look.subject = &subject;
  look.turned = true;
  look.was_awake = false;
}

void TickSampler::Settle(Look& look) {
  outcome_.held += HeldFor(look, std::nullopt);
  look.tries = 0;
  look.held = {};
}

void TickSampler::EndCopy(Look& look) {
  look.ticket.outcome = pauser_.Finish(look.ticket, look.job);
  look.begun = false;
  if (SampledThread* subject = look.domain->Find(look.job.tstate())) TurnTo(look, *subject);
  ++look.tries;
  look.held.copies += look.ticket.outcome.holds;
  look.held.copying += look.ticket.outcome.held_for;
  look.held.disturbed |= look.ticket.outcome.disturbed;
  if (look.job.subject_cpu >= 0) look.subject->set_last_cpu(look.job.subject_cpu);
  TakeAsItSlept(look);
  if (look.job.subject_look) look.was_awake |= look.job.subject_look->awake;
}

bool TickSampler::IsHalfDone(const Look& look) {
  return look.ticket.outcome.held && !look.job.IsWhole();
}

bool TickSampler::Good(const Look& look) const {
  const PauseOutcome& pause = look.ticket.outcome;
  if (pauser_.mode_in_use() == PauseMode::kNone) return pause.copied;
  return pause.held && look.job.IsWhole() &&
         (!chooser_.SharesCopies(*look.domain) || !look.job.AnotherHoldsLock());
}

void TickSampler::Record(Look& look) {
  const CopyJob& job = look.job;
  const bool held = look.ticket.outcome.held;
  context_.codes.Update(job.seen_codes, job.generation, tick_.time);
  // A thread stopped by ptrace stood still wherever it was last seen.
  const bool all_frozen =
      !look.domain->free_threaded() &&
      (job.AllFrozen() || (held && job.gil_state.HeldBy(look.subject->id().tstate)));
  const bool taken = TakeStack(look, *look.subject, held, SubjectLook(look));
  outcome_.taken |= taken;
  for (SampledThread* other : look.others) {
    const bool proved =
        all_frozen || &other->copy() == job.LetGoHeldStill() || other->StoodStillSince();
    outcome_.taken |= TakeStack(look, *other, proved, other->copy().look);
  }
  outcome_.held += HeldFor(look, taken && look.subject->current() ? WaitedFor(look) : std::nullopt);
  const bool calm = held && look.tries == 1 && !look.turned && look.others.empty() &&
                    !job.new_codes && job.SubjectHoldsLock();
  calm_looks_ = calm ? calm_before_ + 1 : 0;
  bytes_copied_ = look.subject->copy().memory.byte_count();
  // With one thread there was nothing to choose, and the count was not read for it.
  look.domain->switch_number =
      look.domain->threads.size() == 1 ? job.gil_state.switch_number : look.switch_number;
  look.domain->last_subject = look.subject;
}

void TickSampler::RecordWhoLetGo(Look& look) {
  const ThreadCopy* const copy = look.job.LetGoHeldStill();
  if (copy == nullptr || copy->status != WalkStatus::kComplete) return;
  const auto it = std::ranges::find(look.others, copy, [](SampledThread* t) { return &t->copy(); });
  if (it == look.others.end()) return;
  SetTime(look.job.began);
  context_.codes.Update(look.job.seen_codes, look.job.generation, tick_.time);
  outcome_.taken |= TakeStack(look, **it, true, copy->look);
}

void TickSampler::SetTime(Nanoseconds copied) {
  tick_.time = std::max(asked_, copied);
  outcome_.first = has_time_ ? std::min(outcome_.first, tick_.time) : tick_.time;
  outcome_.time = std::max(outcome_.time, tick_.time);
  has_time_ = true;
}

// Of who turned out to have the lock the kernel has not been asked yet.
std::optional<TaskLook> TickSampler::SubjectLook(const Look& look) {
  if (look.job.subject_look || !look.job.SubjectHoldsLock()) return look.job.subject_look;
  const auto stat = look.subject->clock().Read();
  return stat ? std::optional(TaskLook{*stat, true}) : std::nullopt;
}

std::optional<Waiting> TickSampler::WaitedFor(Look& look) {
  if (!look.subject->clock().exact()) return std::nullopt;
  const KernelAccount::Charge& charge = look.subject->kernel().ledger().last_charge();
  return Waiting{Nanoseconds(static_cast<int64_t>(charge.run_delay_ns)), charge.switches};
}

Nanoseconds TickSampler::HeldFor(Look& look, const std::optional<Waiting>& waited) {
  // Who slept all the while waited for nobody.
  const auto& seen = look.job.subject_look;
  const bool slept = waited && waited->arrivals == 0 && seen && !seen->awake;
  const Nanoseconds copying = look.held.copying;
  if (copying > Nanoseconds{} && !slept) held_each_.Add(static_cast<uint64_t>(copying.count()));
  switch (pauser_.mode_in_use()) {
    case PauseMode::kNone:
      return waited ? std::min(copying, waited->time) : Nanoseconds{};
    // A stopped thread does not wait for a CPU: run_delay knows nothing of it.
    case PauseMode::kPtrace:
      return copying;
    default:
      break;
  }
  if (slept) return {};
  look.held.waited = waited;
  return held_time_.Estimate(look.held, look.subject->kernel().held_pending());
}

bool TickSampler::TakeStack(const Look& look, SampledThread& thread, bool proved,
                            const std::optional<TaskLook>& seen) {
  ThreadCopy& copy = thread.copy();
  if (!proved && copy.walk) pyabi::TrimToExecuting(*copy.walk, copy.frames);
  if (!proved && copy.status == WalkStatus::kComplete && IsPiece(copy)) {
    copy.status = WalkStatus::kIncomplete;
  }
  LockDomain& domain = *look.domain;
  const bool had_lock = look.job.HoldsLock(copy);
  // Of threads looked at one after the other several may have had the lock, in one tick.
  const bool has_its_time = had_lock && (chooser_.SharesCopies(domain) || domain.free_threaded() ||
                                         domain.locked_in != tick_.number);
  uint8_t flags = has_its_time ? kSampleGil : 0;
  std::optional<TaskLook> found = seen;
  if (had_lock && !has_its_time && found) found->on_cpu = OnCpu::kYes;
  if (context_.native != nullptr && copy.native.copy().in_kernel) flags |= kSampleKernel;
  if (!proved) flags |= kSampleMarked;
  if (copy.status != WalkStatus::kComplete) flags |= kSampleIncomplete;
  // Without names it is memory of a thread that has ended, most likely: no stack at all.
  if (!thread.TakeCopy(tick_, flags, found, proved ? Names::kAsFound : Names::kAll)) {
    outcome_.failed = outcome_.stale_threads = true;
    return false;
  }
  if (thread.gone()) {
    outcome_.stale_threads = true;
    return false;
  }
  if (has_its_time) domain.locked_in = tick_.number;
  outcome_.marked |= !proved;
  if ((thread.standing_flags() & kSampleIncomplete) != 0) outcome_.incomplete = true;
  return true;
}

// Of copies without proof, that were walked to an end.
bool TickSampler::IsPiece(const ThreadCopy& copy) {
  return (copy.walk && copy.walk->has_left_frame) ||
         !copy.plan->BeginsAtBottom(copy.memory, copy.frames) ||
         context_.codes.EndsInGenerator(copy.frames, tick_.time);
}

}  // namespace pystrobe::remote
