// SPDX-License-Identifier: Apache-2.0
//
// A thread as the kernel has it: its clock, and where its time goes.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "sampler/pyabi/stack_copy.h"
#include "sampler/remote/target.h"
#include "sampler/remote/task_clock.h"
#include "sampler/remote/thread_ledger.h"
#include "sampler/remote/tick.h"

namespace pystrobe::remote {

/// What one interpreter has on a thread. [value]
struct ThreadState {
  const PyThread& id;
  bool has_frames = false;  ///< as of its last copy
};

/// Several interpreters may have a state on one thread, each with a stack of its own: who calls
/// into a sub-interpreter waits in one while the thread runs in the other. The thread's time is
/// that of the one that is current. [one thread: the pacer]
class KernelThread {
 public:
  /// Found at `now`; its samples are those of `index`.
  KernelThread(TaskFiles& files, pid_t pid, pid_t tid, const Timeline& timeline, ThreadIndex index,
               const Tick& now);

  pid_t tid() const { return tid_; }
  ThreadIndex index() const { return index_; }
  TaskClock& clock() { return clock_; }
  ThreadLedger& ledger() { return ledger_; }
  /// HeldTime's, of this thread.
  Nanoseconds& held_pending() { return held_pending_; }

  /// The recording begins now: what was before is not counted, and samples yielded before are void.
  void BeginAt(Nanoseconds now) { ledger_.BeginAt(now, clock_.Read()); }
  /// The last call of all, at `tick`: yields all that is left.
  void Finish(const Tick& tick);

  /// A state of it; not owned, and in its place until Remove.
  void Add(const ThreadState* state) { states_.push_back(state); }
  void Remove(const ThreadState* state) { std::erase(states_, state); }
  std::span<const ThreadState* const> states() const { return states_; }
  /// Whether `state` is the one that runs on the thread, or ran there last. `copy`: of that state.
  bool IsCurrent(const ThreadState& state, const pyabi::Layout& layout,
                 const pyabi::StackCopy& copy) const;

 private:
  pid_t tid_;
  ThreadIndex index_;
  TaskClock clock_;
  ThreadLedger ledger_;
  Nanoseconds held_pending_{};
  std::vector<const ThreadState*> states_;
};

}  // namespace pystrobe::remote
