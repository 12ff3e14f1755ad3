// SPDX-License-Identifier: Apache-2.0
//
// What one interpreter of the target has on a thread while that is sampled: its last stack and what
// to predict of it. Its samples are made by the KernelThread's ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/copy_job.h"
#include "sampler/remote/kernel_thread.h"
#include "sampler/remote/stack_path.h"
#include "sampler/remote/stack_plan.h"
#include "sampler/remote/target.h"
#include "sampler/remote/task_clock.h"
#include "sampler/remote/tick.h"

namespace pystrobe::remote {

class NativeStacks;

/// What all threads of one run share; outlives them.
struct RunContext {
  const Target& target;
  Tables& tables;
  CodeCache& codes;
  Nanoseconds start;               ///< of the recording: Sample::time_ns counts from it
  std::vector<Sample>& samples;    ///< where samples go
  bool locals = false;             ///< take local variables with the stacks
  TaskFiles files{};               ///< of the threads' own
  NativeStacks* native = nullptr;  ///< where stacks have C functions too
};

/// Which names a stack must have.
enum class Names {
  kAsFound,  ///< a frame may have none: it is proved to be there
  kAll,
};

/// [one thread: the pacer]
class SampledThread {
 public:
  /// `kernel`: of thread.tid; outlives this.
  SampledThread(RunContext& context, const PyThread& thread, KernelThread& kernel);
  ~SampledThread() { kernel_.Remove(&state_); }
  SampledThread(const SampledThread&) = delete;
  SampledThread& operator=(const SampledThread&) = delete;

  const PyThread& id() const { return thread_; }
  KernelThread& kernel() { return kernel_; }
  ThreadIndex index() const { return kernel_.index(); }
  ThreadCopy& copy() { return copy_; }
  TaskClock& clock() { return kernel_.clock(); }
  /// The kernel no longer knows the thread.
  bool gone() const { return kernel_.ledger().gone(); }

  /// False when the thread certainly did not run since its last sample: it was off CPU then and was
  /// not put on one since. Its stack is what it was.
  bool MayHaveRun(const Tick& now);
  /// True when the thread did not run since the MayHaveRun() that said it had, and does not run
  /// now: what was copied in between is consistent.
  bool StoodStillSince();
  /// False when the thread has slept for long: then it is not likely to wake in the microseconds
  /// between being asked for and being looked at.
  bool MayWakeSoon(const Tick& now) const;
  /// What MayHaveRun saw, of a thread that has been asleep since.
  std::optional<TaskLook> SeenAsleep() {
    if (!StoodStillSince()) return std::nullopt;
    return TaskLook{looked_, false, false};
  }
  /// True when the last look found the thread off CPU.
  bool off_cpu() const { return kernel_.ledger().off_cpu(); }

  /// Makes `job` one of copying this thread's stack into `copy` with this thread held. `gil`: of
  /// its interpreter; null without one.
  void Prepare(CopyJob& job, GilReader* gil, ThreadCopy& copy);
  /// Notes in a job so prepared what the kernel says now.
  void LookBefore(CopyJob& job);
  /// Has `job` copy this thread's stack into copy() along with its subject's.
  void PrepareAlong(CopyJob& job);
  /// The same of a job whose subject it turns out to be. Nullopt without rseq. [threads that run
  /// jobs, while the pacer changes nothing]
  std::optional<LockHolders::Holder> AsHolder();
  int last_cpu() const { return last_cpu_; }
  void set_last_cpu(int cpu) { last_cpu_ = cpu; }

  /// Takes over the stack in copy(), and yields the thread's samples that end at `tick` where the
  /// interpreter is current there. `look`: of the moment of the copy; nullopt: the kernel is asked
  /// now. False, and nothing is taken, where all names are asked for and a frame has none. A thread
  /// that is found gone has none of it either.
  bool TakeCopy(const Tick& tick, uint8_t flags, const std::optional<TaskLook>& look, Names names);

  /// The thread was found gone.
  void Miss(const Tick& now) { kernel_.ledger().Miss(now); }

  /// The last stack taken, as NativeStacks::Add has it where it is of those; and those of
  /// kStandingFlags that it had.
  bool has_stack() const { return has_stack_; }
  StackId stack() const { return stack_; }
  uint8_t standing_flags() const { return standing_flags_; }
  /// As of that: the thread's time was this interpreter's.
  bool current() const { return current_; }
  std::vector<pyabi::RawFrame> ShownFrames() const { return path_.ShownFrames(); }
  const std::vector<FrameLocals>& locals() const { return locals_; }

 private:
  TaskWatch Watch(bool awake, const std::optional<SchedStat>& stat);
  /// How to prove that it stood still.
  CpuWitness Witness();
  /// Where the kernel tells on which CPU it runs; 0: nowhere.
  Address RseqCpuId() const;
  Address GenerationAddress() const;
  /// Makes stack() that of the copy. False where a frame has no name.
  bool TakeStack(size_t common, Nanoseconds now);

  RunContext& context_;
  PyThread thread_;
  KernelThread& kernel_;
  ThreadState state_;
  StackPlan plan_;
  ThreadCopy copy_;

  SchedStat looked_;  // what MayHaveRun saw
  int last_cpu_ = 0;

  bool has_stack_ = false;
  StackId stack_ = kEmptyStack;
  bool current_ = true;
  uint8_t standing_flags_ = 0;
  SchedStat copied_;  // what the kernel said when the last stack was taken

  StackPath path_;
  std::vector<FrameLocals> locals_;  // of the last stack, where asked for
};

}  // namespace pystrobe::remote
