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
#include "sampler/remote/sampler.h"

namespace pystrobe::remote {

/// What came of one copy.
struct PauseOutcome {
  bool copied = false;    ///< the job has results
  bool held = false;      ///< the subject is proved to have stood still
  Nanoseconds held_for{}; ///< by our clock, without the context switches around it
};

/// Makes copies on the CPU of the thread concerned (preempt), with the thread stopped (ptrace), or
/// at once (none). Probes are made when a CPU is first needed and stay. [one thread: the pacer]
class Pauser {
 public:
  /// `threads_of` the pacer: it keeps itself off the subject's CPU where there is another.
  explicit Pauser(PauseMode mode);
  ~Pauser();

  /// Runs the job with the subject thread `tid` held on `cpu` (where it was seen last).
  PauseOutcome Copy(CopyJob& job, pid_t tid, int cpu);

  /// What kAuto came to: kPreempt until the CPU proved not ours to enter, then kPtrace.
  PauseMode mode_in_use() const { return mode_in_use_; }
  /// Why it is not preemption; empty when it is.
  const std::string& reason() const { return reason_; }

 private:
  PauseOutcome CopyByPreemption(CopyJob& job, int cpu);
  PauseOutcome CopyByPtrace(CopyJob& job, pid_t tid);
  Probe* ProbeFor(int cpu);
  void KeepOff(int cpu);
  void GiveUpPreemption(std::string reason);

  PauseMode wanted_;
  PauseMode mode_in_use_;
  std::string reason_;
  std::vector<std::unique_ptr<Probe>> probes_;  // by CPU
  std::vector<int> allowed_cpus_;
  int kept_off_ = -1;
};

}  // namespace pystrobe::remote
