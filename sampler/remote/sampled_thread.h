// SPDX-License-Identifier: Apache-2.0
//
// One Python thread of the target while it is sampled: its clock, its last stack and what to
// predict of it. The samples it yields are made by its ThreadLedger.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/stack_plan.h"
#include "sampler/remote/target.h"
#include "sampler/remote/task_clock.h"
#include "sampler/remote/thread_ledger.h"
#include "sampler/remote/tick.h"

namespace pystrobe::remote {

/// What all threads of one run share; outlives them.
struct RunContext {
  const Target& target;
  Tables& tables;
  CodeCache& codes;
  Nanoseconds start;             ///< of the recording: Sample::time_ns counts from it
  std::vector<Sample>& samples;  ///< where samples go
  bool locals = false;           ///< take local variables with the stacks
  TaskFiles files{};             ///< of the threads' own
};

/// Which names a stack must have.
enum class Names {
  kAsFound,  ///< a frame may have none: it is proved to be there
  kAll,
};

/// [one thread: the pacer]
class SampledThread {
 public:
  /// `accounted`: of thread.tid; a null pointee starts it at what the kernel says now.
  SampledThread(RunContext& context, const PyThread& thread, ThreadIndex index, const Tick& now,
                AccountedTime& accounted);

  /// The recording begins now: what was before is not counted, and samples yielded before are void.
  void BeginAt(Nanoseconds now);

  const PyThread& id() const { return thread_; }
  ThreadIndex index() const { return index_; }
  ThreadCopy& copy() { return copy_; }
  TaskClock& clock() { return clock_; }
  /// The kernel no longer knows the thread.
  bool gone() const { return ledger_.gone(); }

  /// False when the thread certainly did not run since its last sample: it was off CPU then and was
  /// not put on one since. Its stack is what it was.
  bool MayHaveRun(const Tick& now);
  /// True when the thread did not run since the MayHaveRun() that said it had, and does not run
  /// now: what was copied in between is consistent.
  bool StoodStillSince();
  /// Runs `job`, whose subject the thread is, with nobody held. True when the thread slept all the
  /// while, by the kernel's count of how often it was put on a CPU: then the copy is proved.
  bool SleepsDuring(CopyJob& job);
  /// What MayHaveRun saw, of a thread that has been asleep since.
  std::optional<TaskLook> SeenAsleep() {
    if (!StoodStillSince()) return std::nullopt;
    return TaskLook{looked_, false, false};
  }
  /// True when the last look found the thread off CPU.
  bool off_cpu() const { return ledger_.off_cpu(); }

  /// Makes `job` one of copying this thread's stack into `copy` with this thread held. `gil`: of
  /// its interpreter; null without one.
  void Prepare(CopyJob& job, GilReader* gil, ThreadCopy& copy);
  /// HeldTime's, of this thread.
  Nanoseconds& held_pending() { return held_pending_; }
  int last_cpu() const { return last_cpu_; }
  void set_last_cpu(int cpu) { last_cpu_ = cpu; }

  /// Takes over the stack in copy() and yields the samples that end at `tick`. `look`: of the
  /// moment of the copy; nullopt: the kernel is asked now. False, and nothing is taken, where all
  /// names are asked for and a frame has none. A thread that is found gone has none of it either.
  bool TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look, Names names);

  /// What MayHaveRun saw; and whether the thread is awake now, a moment later.
  TaskLook LookNow() { return {looked_, clock_.Running(), false}; }

  /// The thread was found gone.
  void Miss(const Tick& now) { ledger_.Miss(now); }
  /// As ThreadLedger's.
  void Flush() { ledger_.Flush(); }
  /// The last call of all, at `tick`: yields all that is left.
  void Finish(const Tick& tick);

  /// The last stack taken, and of its SampleFlag bits those that hold while the thread does not
  /// run.
  bool has_stack() const { return ledger_.has_stack(); }
  StackId stack() const { return ledger_.stack(); }
  uint8_t standing_flags() const { return ledger_.standing_flags(); }
  const std::vector<pyabi::RawFrame>& frames() const { return frames_; }
  const std::vector<FrameLocals>& locals() const { return locals_; }

  /// What the kernel charged it between the look before the last and the last one.
  const KernelAccount::Charge& last_charge() const { return ledger_.last_charge(); }
  /// Time it waited for a CPU, in all.
  uint64_t total_run_delay() const { return ledger_.total_run_delay(); }

 private:
  ThreadLedger OpenLedger(const Tick& now, AccountedTime& accounted);
  /// Makes the stack in copy() the thread's: its last id in path_. The first `common` frames, from
  /// the root on, are known. False when a frame of it could not be named.
  bool InternStack(size_t common, Nanoseconds now);
  /// How many frames, from the root on, are those of the last stack still.
  size_t CountCommon(Nanoseconds now);
  /// How to prove that it stood still.
  CpuWitness Witness();

  RunContext& context_;
  PyThread thread_;
  ThreadIndex index_;
  StackPlan plan_;
  ThreadCopy copy_;
  TaskClock clock_;
  ThreadLedger ledger_;

  SchedStat looked_;  // what MayHaveRun saw
  int last_cpu_ = 0;
  Nanoseconds held_pending_{};

  std::vector<pyabi::RawFrame> frames_;  // of the last stack, leaf first
  std::vector<FrameLocals> locals_;      // of the last stack, where asked for
  StackId base_ = kEmptyStack;           // of the last stack: what its frames stand on
  std::vector<StackId> path_;            // root first: the stack up to each frame
  std::vector<size_t> hidden_;           // positions of frames that are not shown, falling
  size_t settled_ = 0;                   // frames from the root on whose codes were settled ...
  uint64_t settled_epoch_ = 0;           // ... in this epoch of the code cache, ...
  Nanoseconds settled_until_{};          // ... but they are to be seen in use now and then
};

}  // namespace pystrobe::remote
