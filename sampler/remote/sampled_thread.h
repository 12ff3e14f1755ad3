// SPDX-License-Identifier: Apache-2.0
//
// One Python thread of the target while it is sampled: its last stack, its last CPU time, what to
// predict of it, and the samples it yields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/stack_plan.h"
#include "sampler/remote/target.h"
#include "sampler/remote/task_clock.h"

namespace pystrobe::remote {

/// A moment of the sampling clock.
struct Tick {
  uint64_t number = 0;
  Nanoseconds time{};      ///< CLOCK_MONOTONIC
  Nanoseconds previous{};  ///< that of the tick before
  bool late = false;
};

/// What all threads of one run share; outlives them.
struct RunContext {
  const Target& target;
  Tables& tables;
  CodeCache& codes;
  Nanoseconds start;             ///< of the recording: Sample::time_ns counts from it
  std::vector<Sample>& samples;  ///< where samples go
  bool locals = false;           ///< take local variables with the stacks
};

/// What the kernel charged one of its threads, as far as samples account for it. Interpreters that
/// take turns on one kernel thread share it, so that no time is counted twice.
using AccountedTime = std::shared_ptr<SchedStat>;

/// [one thread: the pacer]
class SampledThread {
 public:
  /// `accounted`: of thread.tid; a null pointee starts it at what the kernel says now.
  SampledThread(RunContext& context, const PyThread& thread, ThreadIndex index, const Tick& now,
                AccountedTime& accounted);

  const PyThread& id() const { return thread_; }
  ThreadIndex index() const { return index_; }
  ThreadCopy& copy() { return copy_; }
  TaskClock& clock() { return clock_; }
  /// The kernel no longer knows the thread.
  bool gone() const { return gone_; }

  /// False when the thread certainly did not run since its last sample: it was off CPU then and was
  /// not put on one since. Its stack is what it was.
  bool MayHaveRun();
  /// True when the thread did not run since the MayHaveRun() that said it had, and does not run
  /// now: what was copied in between is consistent.
  bool StoodStillSince();
  /// True when the last look found the thread off CPU.
  bool off_cpu() const { return off_cpu_; }

  /// How to prove that it stood still.
  CpuWitness Witness();
  int last_cpu() const { return last_cpu_; }
  void set_last_cpu(int cpu) { last_cpu_ = cpu; }

  /// Takes over the stack in copy() and yields the sample that ends at `tick`; if ticks went by
  /// without a look, because it was idle, first a run-length entry for those. `look`: of the moment
  /// of the copy; nullopt: the kernel is asked now.
  void TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look);

  /// What MayHaveRun saw, and whether the thread was awake then.
  TaskLook LookNow() { return {looked_, clock_.Running(), false}; }

  /// Yields what is pending up to `tick` as a run-length entry; of a thread that runs nothing is.
  void Flush(const Tick& tick);
  /// The last call of all: yields also the CPU time that no stack was seen for.
  void Finish(const Tick& tick);

  /// The last stack taken, and of its SampleFlag bits those that hold while the thread does not
  /// run.
  bool has_stack() const { return has_stack_; }
  StackId stack() const { return stack_; }
  uint8_t standing_flags() const { return standing_flags_; }
  const std::vector<pyabi::RawFrame>& frames() const { return frames_; }
  const std::vector<FrameLocals>& locals() const { return locals_; }

  /// Time it waited for a CPU: since the sample before the last, and in all.
  uint64_t last_run_delay() const { return last_run_delay_; }
  uint64_t total_run_delay() const { return total_run_delay_; }

 private:
  /// Makes the stack in copy() the thread's. False when a frame of it could not be named.
  bool InternStack(Nanoseconds now);
  /// How many frames, from the root on, are those of the last stack still.
  size_t CountCommon();
  void EmitRun(const Tick& tick, uint64_t cpu_ns, uint8_t flags);
  uint64_t EmitLastRun(const Tick& tick, uint64_t cpu_ns);
  uint64_t ShareOut(const Tick& tick, uint64_t cpu_ns, bool running);
  void Emit(Nanoseconds end, uint64_t cpu_ns, uint64_t tick_number, uint8_t flags);

  RunContext& context_;
  PyThread thread_;
  ThreadIndex index_;
  StackPlan plan_;
  ThreadCopy copy_;
  TaskClock clock_;

  AccountedTime accounted_;
  SchedStat last_;    // as of the last sample
  SchedStat looked_;  // what MayHaveRun saw
  bool off_cpu_ = false;
  bool was_running_ = false;             // at the last look
  uint64_t unseen_cpu_ns_ = 0;           // used between two looks that found it asleep
  StackId running_stack_ = kEmptyStack;  // the last one seen running
  bool gone_ = false;
  bool has_stack_ = false;
  int last_cpu_ = 0;
  uint64_t last_run_delay_ = 0, total_run_delay_ = 0;

  std::vector<pyabi::RawFrame> frames_;  // of stack_, leaf first
  std::vector<FrameLocals> locals_;      // of the last stack, where asked for
  std::vector<StackId> path_;            // root first: the stack up to each frame
  std::vector<size_t> hidden_;           // positions of frames that are not shown, falling
  size_t settled_ = 0;                   // frames from the root on whose codes were settled ...
  uint64_t settled_epoch_ = 0;           // ... in this epoch of the code cache
  StackId stack_ = kEmptyStack;
  uint8_t standing_flags_ = 0;  // of the last copy, for the run-length entries that repeat it
  Nanoseconds emitted_until_;
  uint64_t emitted_tick_;
};

}  // namespace pystrobe::remote
