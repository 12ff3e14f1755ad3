// SPDX-License-Identifier: Apache-2.0
//
// Holding one thread still while a copy is made, by the means that are allowed and work.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/base/clock.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/held_time.h"
#include "sampler/remote/probe.h"
#include "sampler/remote/sampler.h"
#include "sampler/remote/tracer.h"

namespace pystrobe::remote {

/// What came of one copy.
struct PauseOutcome {
  bool copied = false;     ///< the job has results
  bool held = false;       ///< the subject is proved to have stood still
  Nanoseconds held_for{};  ///< by our clock, without the context switches around it; where the
                           ///< pacer is on the target's CPU, all that it did there since last
  uint32_t holds = 1;      ///< how often the subject's CPU was taken, some of it in vain
  bool disturbed = false;  ///< others had that CPU while it was ours
};

/// A copy under way or done; Pauser::Finish ends it.
struct PauseTicket {
  Probe* probe = nullptr;  ///< running it; null: done already, and `outcome` is what came of it
  PauseOutcome outcome;
  uint32_t holds_in_vain = 0;  ///< so often the CPU was taken before, to no avail
  Nanoseconds in_vain{};       ///< and for so long
};

/// Makes copies on the CPU of the thread concerned (preempt), with the thread stopped (ptrace), or
/// at once (none). Probes are made when a CPU is first needed and stay. The calling thread is kept
/// off the CPU of the thread it paused last, where there is another. [one thread: the pacer]
class Pauser {
 public:
  /// `own_process`: the threads to pause are this process' own. A thread of it can stop none of the
  /// others by ptrace, so there kAuto comes to kNone.
  explicit Pauser(PauseMode mode, bool own_process = false);
  ~Pauser();

  /// Begins the job with the subject thread held on `cpu` (where it was seen last), at `at`
  /// (CLOCK_MONOTONIC) where the pause can be had then, else at once. The job and its threads must
  /// stay untouched until Finish.
  PauseTicket Begin(CopyJob& job, int cpu, Nanoseconds at = {});
  /// How far copies are apart. Where there is time before each, it is taken to make the target wait
  /// for less: the calling thread then makes the copies itself, none ahead, and spins for the
  /// probe; but not those that are long, or not alone, or for which the CPU could not be kept.
  void ExpectEvery(Nanoseconds period);
  bool takes_time() const { return has_time_; }
  /// So long before a copy is to be made the calling thread should be woken for it, by what it took
  /// before from the end that Sleep was given to Begin. No longer: what a thread does after it was
  /// chosen is not known until it is looked at.
  Nanoseconds lead() const;
  /// After those that are begun next there will be copies at `at` and, after that, at `then`.
  void ExpectNext(Nanoseconds at, Nanoseconds then);
  /// Waits for the job where it is not done.
  PauseOutcome Finish(PauseTicket& ticket, const CopyJob& job);
  /// Has the job run at `at` with the thread that is expected on `cpu` held there, as Begin does,
  /// without the calling thread being awake for it. False, and the job is not taken, where this
  /// cannot be had. The job must stay untouched until EndAhead, which comes before any Finish or
  /// Begin.
  bool BeginAhead(CopyJob& job, int cpu, Nanoseconds at, PauseTicket& ticket);
  /// Takes back those jobs of BeginAhead whose time has not come, and waits for the others. Returns
  /// how many were taken back: the last ones.
  uint32_t EndAhead();
  /// True while the CPU's probe has a job.
  bool Busy(int cpu) const;

  /// Sleeps until `until` (CLOCK_MONOTONIC), or a job under way needs the pacer, or a signal comes.
  void Sleep(Nanoseconds until);

  /// What kAuto came to: kPreempt until the CPU proved not ours to enter, then kPtrace or kNone.
  PauseMode mode_in_use() const { return mode_in_use_; }
  /// Fails when what was asked for, and nothing else, cannot be had; no copy is made any more then.
  Result<void> Check() const;
  /// CPU time that the probes have used.
  Nanoseconds ProbesCpu();

 private:
  PauseOutcome OutcomeOf(const CopyJob& job);
  Nanoseconds HeldFor(const CopyJob& job);
  bool BeginPreemption(CopyJob& job, int cpu, Nanoseconds at, PauseTicket& ticket);
  bool CanCopyBeside(const CopyJob& job, int cpu, Nanoseconds at);
  bool CopyBeside(CopyJob& job, Nanoseconds at, PauseTicket& ticket);
  void WaitFor(Probe& probe);
  PauseOutcome CopyByPtrace(CopyJob& job, Tracer::Moment moment);
  /// A copy can be made at a time that is still to come.
  bool CanBeEarly() const;
  /// `is_here`: the calling thread is on that CPU.
  void NoteWhereWeAre(int target_cpu, bool is_here);
  void NoteReady();
  Nanoseconds PacersWork();
  Probe* ProbeFor(int cpu);
  void GiveUpPreemption(std::string_view reason);

  PauseMode wanted_;
  PauseMode otherwise_;  // where kAuto may not preempt
  PauseMode mode_in_use_;
  std::optional<Error> failure_;
  bool has_time_ = false;
  Nanoseconds period_{};
  Nanoseconds slept_until_{};
  RunningQuantile readiness_;  // from then until a copy is begun
  RunningQuantile copying_;    // that a copy took which nobody disturbed: the median
  Pacer pacer_;
  bool shares_cpu_ = false;                     // with the target, when it was paused last
  bool has_copied_ = false;                     // so, since it last slept
  Nanoseconds own_cpu_{};                       // at that time or since
  std::vector<std::unique_ptr<Probe>> probes_;  // by CPU
  Probe* ahead_ = nullptr;                      // that has the jobs of BeginAhead
  uint32_t ahead_count_ = 0;                    // of them
  std::unique_ptr<Tracer> tracer_;
};

}  // namespace pystrobe::remote
