// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pauser.h"

#include <sched.h>

namespace pystrobe::remote {
namespace {

// Far above any honest delay of a probe of high priority; a CPU that a real-time program keeps
// longer is not ours to enter.
constexpr Nanoseconds kProbePatience = std::chrono::milliseconds(100);

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

Pauser::Pauser(PauseMode mode)
    : wanted_(mode), mode_in_use_(mode == PauseMode::kAuto ? PauseMode::kPreempt : mode) {
  CPU_ZERO(&allowed_);
  sched_getaffinity(0, sizeof allowed_, &allowed_);
}

Pauser::~Pauser() = default;

PauseTicket Pauser::Begin(CopyJob& job, pid_t tid, int cpu) {
  PauseTicket ticket;
  if (mode_in_use_ == PauseMode::kPreempt && BeginPreemption(job, cpu, ticket)) return ticket;
  // Either asked for, or preemption has just been given up.
  if (mode_in_use_ == PauseMode::kPtrace) {
    ticket.outcome = CopyByPtrace(job, tid);
  } else if (mode_in_use_ == PauseMode::kNone) {
    job.Run();
    ticket.outcome = {job.read_ok, false, {}};
  }
  return ticket;
}

bool Pauser::BeginPreemption(CopyJob& job, int cpu, PauseTicket& ticket) {
  KeepOff(cpu);
  if (sched_getcpu() == cpu) {
    // One CPU only, or the scheduler's whim: the pacer itself has taken the target's CPU.
    job.Run();
    ticket.outcome = {job.read_ok, job.HeldStill(), job.took};
    return true;
  }
  ticket.probe = ProbeFor(cpu);
  if (ticket.probe == nullptr) return false;
  // A probe has one job at a time; the one before stays done until its owner asks.
  if (ticket.probe->busy()) WaitFor(*ticket.probe);
  ticket.probe->Submit(job);
  return true;
}

PauseOutcome Pauser::Finish(PauseTicket& ticket, const CopyJob& job) {
  if (ticket.probe == nullptr) return ticket.outcome;
  WaitFor(*ticket.probe);
  ticket.probe = nullptr;
  ticket.outcome = {job.read_ok, job.HeldStill(), job.took};
  return ticket.outcome;
}

void Pauser::WaitFor(Probe& probe) {
  if (probe.Wait(kProbePatience)) return;
  GiveUpPreemption(fmt::format("CPU {} was not given to us within {} ms (a real-time program?)",
                               probe.cpu(), kProbePatience / std::chrono::milliseconds(1)));
  do {
    probe.Release(allowed_);
  } while (!probe.Wait(kProbePatience));
}

bool Pauser::Busy(int cpu) const {
  auto index = static_cast<size_t>(cpu);
  return cpu >= 0 && index < probes_.size() && probes_[index] != nullptr && probes_[index]->busy();
}

PauseOutcome Pauser::CopyByPtrace(CopyJob& job, pid_t tid) {
  const Nanoseconds start = MonotonicNow();
  const bool stopped = stop_.Stop(tid);
  job.Run();
  stop_.Resume();
  return {job.read_ok, stopped && job.read_ok, MonotonicNow() - start};
}

Probe* Pauser::ProbeFor(int cpu) {
  if (cpu < 0) return nullptr;
  auto index = static_cast<size_t>(cpu);
  if (probes_.size() <= index) probes_.resize(index + 1);
  if (probes_[index] == nullptr) {
    auto probe = Probe::Start(cpu, attention_);
    if (!probe) {
      GiveUpPreemption(probe.error().message);
      return nullptr;
    }
    probes_[index] = std::move(*probe);
  }
  return probes_[index].get();
}

// A pacer whose timer fires on the target's CPU would interrupt it once more for each sample.
void Pauser::KeepOff(int cpu) {
  if (cpu == kept_off_ || cpu < 0 || CPU_COUNT(&allowed_) < 2) return;
  kept_off_ = cpu;
  cpu_set_t others = allowed_;
  CPU_CLR(cpu, &others);
  sched_setaffinity(0, sizeof others, &others);
}

void Pauser::GiveUpPreemption(std::string reason) {
  if (wanted_ == PauseMode::kAuto) {
    mode_in_use_ = PauseMode::kPtrace;
  } else {
    failure_ = std::move(reason);
  }
}

}  // namespace pystrobe::remote
