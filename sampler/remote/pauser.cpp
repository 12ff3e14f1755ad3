// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pauser.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "profiler/base/switch_flag.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

// Far above any honest delay of a probe of high priority, and above those of a virtual CPU that is
// itself not run; a CPU that a real-time program keeps longer is not ours to enter.
constexpr Nanoseconds kProbePatience = std::chrono::milliseconds(300);
// A copy made beside the target's CPU while that is held; a longer one may last longer than the
// hold.
constexpr Nanoseconds kShortCopy = CpuHold::kLongest / 4;
// From the time at which we were to wake until a copy is begun: so much at first.
constexpr Nanoseconds kReadiness = std::chrono::microseconds(100);
constexpr double kReadyShare = 0.95;
// A copy takes so long at first; hardly any takes more than so many times what is usual.
constexpr Nanoseconds kCopying = std::chrono::microseconds(10);
constexpr int kMostOfUsual = 2;
// Where others keep us waiting, waking earlier does not help. Where there is time it is worth more:
// who is late finds what runs first after a wait too often, for the probe has been there at the
// time itself. It took the CPU from whoever had it, and left it to who was woken meanwhile.
constexpr Nanoseconds kLongestLead = std::chrono::microseconds(200);
constexpr Nanoseconds kLongestLeadWithTime = std::chrono::microseconds(800);
// What is left to give a copy to a probe before its time.
constexpr Nanoseconds kMargin = std::chrono::microseconds(5);
// Making a copy beside the target's CPU costs us some 150 us, four times as much as leaving it to
// the probe. Which of the two it is may decide how low a limit of overhead keeps the rate, so
// between these nothing changes.
constexpr Nanoseconds kUnhurried = std::chrono::milliseconds(5), kHurried = kUnhurried / 2;

uint32_t HoldsFor(const CopyJob& job) { return job.woken_for ? 2 : 1; }

}  // namespace

std::string_view PauseModeName(PauseMode mode) {
  switch (mode) {
    case PauseMode::kAuto:
      return "auto";
    case PauseMode::kPreempt:
      return "preempt";
    case PauseMode::kPtrace:
      return "ptrace";
    case PauseMode::kNone:
      return "none";
  }
  return "?";
}

std::optional<PauseMode> PauseModeByName(std::string_view name) {
  for (PauseMode mode :
       {PauseMode::kAuto, PauseMode::kPreempt, PauseMode::kPtrace, PauseMode::kNone}) {
    if (name == PauseModeName(mode)) return mode;
  }
  return std::nullopt;
}

Pauser::Pauser(PauseMode mode, bool own_process)
    : wanted_(mode),
      otherwise_(own_process ? PauseMode::kNone : PauseMode::kPtrace),
      mode_in_use_(mode == PauseMode::kAuto ? PauseMode::kPreempt : mode),
      readiness_(kReadyShare, kReadiness),
      copying_(0.5, kCopying) {
  // Tries it, here where there is time.
  SwitchFlag::Available();
}

Pauser::~Pauser() = default;

Result<void> Pauser::Check() const {
  if (failure_) return std::unexpected(*failure_);
  return {};
}

Nanoseconds Pauser::ProbesCpu() {
  Nanoseconds all{};
  for (const auto& probe : probes_) {
    if (probe != nullptr) all += probe->Cpu();
  }
  return all;
}

void Pauser::ExpectEvery(Nanoseconds period) {
  period_ = period;
  const bool had_time = std::exchange(has_time_, period >= (has_time_ ? kHurried : kUnhurried));
  if (has_time_ != had_time) readiness_ = RunningQuantile(kReadyShare, kReadiness);
}

bool Pauser::CanBeEarly() const {
  // On the target's CPU it is we for whom it has to make room, at the time itself.
  if (shares_cpu_) return false;
  if (mode_in_use_ == PauseMode::kPtrace) return tracer_ != nullptr && tracer_->takes_cpus();
  return mode_in_use_ == PauseMode::kPreempt;
}

Nanoseconds Pauser::lead() const {
  if (!CanBeEarly()) return {};
  const Nanoseconds longest = has_time_ ? kLongestLeadWithTime : kLongestLead;
  return std::min({readiness_.value() + kMargin, longest, period_ * 3 / 4});
}

void Pauser::Sleep(Nanoseconds until) {
  slept_until_ = until;
  has_copied_ = false;
  pacer_.Sleep(until);
}

void Pauser::NoteReady() {
  const Nanoseconds took = MonotonicNow() - std::exchange(slept_until_, Nanoseconds::max());
  if (took > Nanoseconds::zero()) readiness_.Add(took);
}

void Pauser::ExpectNext(Nanoseconds at, Nanoseconds then) {
  for (const auto& probe : probes_) {
    if (probe != nullptr) probe->Expect(at, then);
  }
  if (tracer_ != nullptr) tracer_->Expect(at);
}

PauseTicket Pauser::Begin(CopyJob& job, int cpu, Nanoseconds at) {
  PauseTicket ticket;
  if (failure_) return ticket;
  job.stopped = false;
  const bool is_here = sched_getcpu() == cpu;
  NoteWhereWeAre(cpu, is_here);
  // It was taken off that CPU, and charged, before this was read: where we leave that once the copy
  // is begun, too. Of one that slept by then it tells whether it has run since.
  if (shares_cpu_ || (is_here && job.awake_before)) job.stat_before.reset();
  if (mode_in_use_ == PauseMode::kPreempt && BeginPreemption(job, cpu, at, ticket)) {
    return ticket;
  }
  // Either asked for, or preemption has just been given up.
  if (mode_in_use_ == PauseMode::kPtrace) {
    ticket.outcome = CopyByPtrace(job, {cpu, at});
  } else if (mode_in_use_ == PauseMode::kNone) {
    pacer_.KeepOff(cpu);
    job.RunUnproved();
    // There will be no better ones.
    for (ThreadCopy* thread : job.threads) thread->plan->Confirm();
    ticket.outcome = {.copied = job.read_ok};
    if (shares_cpu_) ticket.outcome.held_for = PacersWork();
  }
  return ticket;
}

bool Pauser::BeginPreemption(CopyJob& job, int cpu, Nanoseconds at, PauseTicket& ticket) {
  // It makes no room for a probe, or goes elsewhere when that comes.
  if (IsRealTime(job.tid)) {
    GiveUpPreemption(fmt::format("thread {} is real-time", job.tid));
    return false;
  }
  if (shares_cpu_) {
    // One CPU only, or others have the rest: the pacer itself has taken the target's CPU. What is
    // known of who had it before is so at first only.
    job.shares_cpu = !std::exchange(has_copied_, true);
    job.Run();
    ticket.outcome = OutcomeOf(job);
    ticket.outcome.held_for = PacersWork();
    return true;
  }
  if (sched_getcpu() != cpu) pacer_.KeepOff(cpu);
  ticket.probe = ProbeFor(cpu);
  if (ticket.probe == nullptr) return false;
  if (ticket.probe->exiled()) {
    ticket.probe = nullptr;
    GiveUpPreemption(fmt::format("CPU {} may not be entered any more", cpu));
    return false;
  }
  // The looks ahead are over by now; what is left is that of another subject on this CPU.
  if (ticket.probe->busy()) WaitFor(*ticket.probe);
  if (CanCopyBeside(job, cpu, at) && CopyBeside(job, at, ticket)) {
    ticket.probe = nullptr;
    if (job.NeedsAttention()) pacer_.Wake();
    return true;
  }
  NoteReady();
  const int probes_cpu = ticket.probe->cpu();
  ticket.probe->Submit(job, at);
  pacer_.KeepOff(probes_cpu);
  return true;
}

// To leave the target's CPU for it would take until the time has passed, as it would to make one
// that is made again.
bool Pauser::CanCopyBeside(const CopyJob& job, int cpu, Nanoseconds at) {
  return has_time_ && job.alone && at > Nanoseconds::zero() && sched_getcpu() != cpu;
}

// After milliseconds of something else a CPU has none of what a copy needs in its caches, and takes
// several times as long for it. So one is made that proves nothing, and then, on the CPU that is
// warm now, the one for which the target waits. The first one also tells who has the lock by then,
// and where.
bool Pauser::CopyBeside(CopyJob& job, Nanoseconds at, PauseTicket& ticket) {
  job.RunUnproved();
  if (MonotonicNow() - job.began >= kShortCopy) return false;
  if (job.read_ok && job.AnotherHoldsLock() && job.TurnToHolder()) job.RunUnproved();
  if (job.subject_cpu >= 0 && job.subject_cpu != ticket.probe->cpu()) {
    Probe* const there = ProbeFor(job.subject_cpu);
    if (there == nullptr) return false;
    ticket.probe = there;
    if (sched_getcpu() == there->cpu()) {
      if (job.awake_before) job.stat_before.reset();  // as in Begin
      return false;
    }
    pacer_.KeepOff(there->cpu());
  }
  job.LookAgain();
  NoteReady();
  Probe& probe = *ticket.probe;
  if (!probe.RunBeside(job, at)) {
    ticket.in_vain = probe.TakeStay();
    ticket.holds_in_vain = HoldsFor(job);
    return false;
  }
  ticket.outcome = OutcomeOf(job);
  return true;
}

PauseOutcome Pauser::Finish(PauseTicket& ticket, const CopyJob& job) {
  if (ticket.probe == nullptr) return ticket.outcome;
  WaitFor(*ticket.probe);
  ticket.probe = nullptr;
  ticket.outcome = OutcomeOf(job);
  if (ticket.in_vain > Nanoseconds::zero()) {
    ticket.outcome.held_for += ticket.in_vain;
    ticket.outcome.disturbed = true;
    ticket.outcome.holds += ticket.holds_in_vain;
  }
  return ticket.outcome;
}

bool Pauser::BeginAhead(CopyJob& job, int cpu, Nanoseconds at, PauseTicket& ticket) {
  // On the target's own CPU there is no need of a probe.
  if (mode_in_use_ != PauseMode::kPreempt || has_time_ || sched_getcpu() == cpu) return false;
  Probe* probe = ProbeFor(cpu);
  if (probe == nullptr || !probe->Submit(job, at)) return false;
  ticket.probe = ahead_ = probe;
  ++ahead_count_;
  return true;
}

uint32_t Pauser::EndAhead() {
  if (ahead_ == nullptr) return 0;
  Probe& probe = *std::exchange(ahead_, nullptr);
  const uint32_t withdrawn = probe.Withdraw(MonotonicNow(), std::exchange(ahead_count_, 0));
  if (probe.busy()) WaitFor(probe);
  return withdrawn;
}

PauseOutcome Pauser::OutcomeOf(const CopyJob& job) {
  return {.copied = job.read_ok,
          .held = job.StoodStill(),
          .held_for = HeldFor(job),
          .holds = HoldsFor(job),
          .disturbed = job.descheduled};
}

// How much of the time was ours is not known where others had the CPU too.
Nanoseconds Pauser::HeldFor(const CopyJob& job) {
  if (job.descheduled) return std::min(job.took, kMostOfUsual * copying_.value());
  copying_.Add(job.took);
  return job.took;
}

void Pauser::WaitFor(Probe& probe) {
  if (probe.Wait(kProbePatience)) return;
  GiveUpPreemption(fmt::format("CPU {} was not given to us within {} ms (a real-time program?)",
                               probe.cpu(), kProbePatience / std::chrono::milliseconds(1)));
  // The job is the probe's until it has run: there is nothing to do but to wait.
  do {
    probe.Release();
    // A signal that was to wake it is lost where somebody in this process has just ignored it.
    probe.Remind();
  } while (!probe.Wait(kProbePatience));
}

bool Pauser::Busy(int cpu) const {
  auto index = static_cast<size_t>(cpu);
  return cpu >= 0 && index < probes_.size() && probes_[index] != nullptr && probes_[index]->busy();
}

PauseOutcome Pauser::CopyByPtrace(CopyJob& job, Tracer::Moment moment) {
  if (tracer_ == nullptr) {
    // Where others have all CPUs, what is to be seen is over before a tracer has its turn.
    const ScopedPromptness for_tracer(Urgency::kAtOnce);
    auto tracer = Tracer::Start();
    if (!tracer) {
      failure_ = tracer.error();
      return {};
    }
    tracer_ = *std::move(tracer);
  }
  // It makes no room for the tracer.
  if (IsRealTime(job.tid)) moment.cpu = -1;
  NoteReady();
  bool slept = false;
  const auto whom = [&job] { return job.WhomToStop(); };
  const auto copy = [&job, &slept] {
    slept = !job.stopped && job.RunAsleep();
    if (!slept) job.Run();
  };
  const Tracer::Outcome hold = tracer_->Hold(moment, whom, copy);
  const bool held = job.read_ok && (hold.stopped || slept);
  if (held) job.threads.front()->plan->Confirm();
  return {.copied = job.read_ok, .held = held, .held_for = hold.held};
}

void Pauser::NoteWhereWeAre(int target_cpu, bool is_here) {
  const bool leaves = mode_in_use_ == PauseMode::kPreempt && pacer_.CanKeepOff(target_cpu);
  const bool shares = is_here && !leaves;
  if (shares && !shares_cpu_) own_cpu_ = ThreadCpuNow();
  shares_cpu_ = shares;
}

// On the target's CPU it waits for all that this thread does, the copy included.
Nanoseconds Pauser::PacersWork() {
  const Nanoseconds now = ThreadCpuNow();
  return now - std::exchange(own_cpu_, now);
}

Probe* Pauser::ProbeFor(int cpu) {
  if (cpu < 0) return nullptr;
  auto index = static_cast<size_t>(cpu);
  if (probes_.size() <= index) probes_.resize(index + 1);
  if (probes_[index] == nullptr) {
    auto probe = Probe::Start(cpu, pacer_);
    if (!probe) {
      GiveUpPreemption(probe.error().message);
      return nullptr;
    }
    probes_[index] = std::move(*probe);
  }
  return probes_[index].get();
}

void Pauser::GiveUpPreemption(std::string_view reason) {
  if (wanted_ == PauseMode::kAuto) {
    mode_in_use_ = otherwise_;
    return;
  }
  failure_ = Error{ErrorCode::kPermission, fmt::format("pausing by preemption: {}", reason),
                   "let it choose (--pause auto), or stop the thread instead (--pause ptrace)"};
}

}  // namespace pystrobe::remote
