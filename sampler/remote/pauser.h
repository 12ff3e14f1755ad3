// SPDX-License-Identifier: Apache-2.0
//
// Holding one thread still while a copy is made, by the means that are allowed and work.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "profiler/base/clock.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/probe.h"
#include "sampler/remote/ptrace_stop.h"
#include "sampler/remote/sampler.h"

namespace pystrobe::remote {

/// What came of one copy.
struct PauseOutcome {
  bool copied = false;     ///< the job has results
  bool held = false;       ///< the subject is proved to have stood still
  Nanoseconds held_for{};  ///< by our clock, without the context switches around it
};

/// A copy under way or done; Pauser::Finish ends it.
struct PauseTicket {
  Probe* probe = nullptr;  ///< running it; null: done already, and `outcome` is what came of it
  PauseOutcome outcome;
};

/// Makes copies on the CPU of the thread concerned (preempt), with the thread stopped (ptrace), or
/// at once (none). Probes are made when a CPU is first needed and stay. The calling thread keeps
/// itself off the CPU of the thread it paused last, where there is another. [one thread: the pacer]
class Pauser {
 public:
  explicit Pauser(PauseMode mode);
  ~Pauser();

  /// Begins the job with the subject thread `tid` held on `cpu` (where it was seen last). The job
  /// and its threads must stay untouched until Finish.
  PauseTicket Begin(CopyJob& job, pid_t tid, int cpu);
  /// Waits for the job where it is not done.
  PauseOutcome Finish(PauseTicket& ticket, const CopyJob& job);
  /// True while the CPU's probe has a job.
  bool Busy(int cpu) const;

  /// Sleeps until `until` (CLOCK_MONOTONIC), or a job under way needs the pacer, or a signal comes.
  void Sleep(Nanoseconds until) { attention_.Wait(until); }

  /// What kAuto came to: kPreempt until the CPU proved not ours to enter, then kPtrace.
  PauseMode mode_in_use() const { return mode_in_use_; }
  /// Why preemption, where it was asked for and nothing else, cannot be had; empty while it can.
  const std::string& failure() const { return failure_; }

 private:
  bool BeginPreemption(CopyJob& job, int cpu, PauseTicket& ticket);
  void WaitFor(Probe& probe);
  PauseOutcome CopyByPtrace(CopyJob& job, pid_t tid);
  Probe* ProbeFor(int cpu);
  void KeepOff(int cpu);
  void GiveUpPreemption(std::string reason);

  PauseMode wanted_;
  PauseMode mode_in_use_;
  std::string failure_;
  Attention attention_;
  std::vector<std::unique_ptr<Probe>> probes_;  // by CPU
  cpu_set_t allowed_;
  int kept_off_ = -1;
  PtraceStop stop_;
};

}  // namespace pystrobe::remote
