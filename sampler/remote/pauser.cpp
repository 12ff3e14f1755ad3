// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/pauser.h"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

namespace pystrobe::remote {
namespace {

// Far above any honest delay of a probe of high priority; a CPU that a real-time program keeps
// longer is not ours to enter.
constexpr Nanoseconds kProbePatience = std::chrono::milliseconds(100);

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::string_view PauseModeName(PauseMode mode) {
  switch (mode) {
    case PauseMode::kAuto: return "auto";
    case PauseMode::kPreempt: return "preempt";
    case PauseMode::kPtrace: return "ptrace";
    case PauseMode::kNone: return "none";
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
    : wanted_(mode),
      mode_in_use_(mode == PauseMode::kAuto ? PauseMode::kPreempt : mode),
      allowed_cpus_(AllowedCpus()) {}

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
    ticket.outcome = {job.read_ok, job.HeldStill(), job.end - job.start};
    return true;
  }
  ticket.probe = ProbeFor(cpu);
  if (ticket.probe == nullptr) return false;
  ticket.probe->Submit(job);
  return true;
}

PauseOutcome Pauser::Finish(PauseTicket& ticket, const CopyJob& job) {
  if (ticket.probe == nullptr) return ticket.outcome;
  if (!ticket.probe->Wait(kProbePatience)) {
    GiveUpPreemption(fmt::format("CPU {} was not given to us within {} ms (a real-time program?)",
                                 ticket.probe->cpu(), kProbePatience / std::chrono::milliseconds(1)));
    while (!ticket.probe->Wait(kProbePatience)) {
    }
  }
  ticket.probe = nullptr;
  ticket.outcome = {job.read_ok, job.HeldStill(), job.end - job.start};
  return ticket.outcome;
}

bool Pauser::Busy(int cpu) const {
  auto index = static_cast<size_t>(cpu);
  return cpu >= 0 && index < probes_.size() && probes_[index] != nullptr && probes_[index]->busy();
}

PauseOutcome Pauser::CopyByPtrace(CopyJob& job, pid_t tid) {
  Nanoseconds start = MonotonicNow();
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
    job.Run();
    return {job.read_ok, false, {}};
  }
  bool stopped = false;
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0) {
    int status = 0;
    stopped = waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
    // A signal that came first must still reach the program.
    int signal = stopped && (status >> 16) == 0 ? WSTOPSIG(status) : 0;
    job.Run();
    if (stopped) ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(signal));
  }
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
  if (cpu == kept_off_ || allowed_cpus_.size() < 2) return;
  kept_off_ = cpu;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int allowed : allowed_cpus_) {
    if (allowed != cpu) CPU_SET(allowed, &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

void Pauser::GiveUpPreemption(std::string reason) {
  if (wanted_ == PauseMode::kAuto) {
    mode_in_use_ = PauseMode::kPtrace;
  } else {
    failure_ = std::move(reason);
  }
}

}  // namespace pystrobe::remote
