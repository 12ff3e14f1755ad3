// SPDX-License-Identifier: Apache-2.0
//
// One look at the target: which thread to hold, copy, prove, try again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "profiler/model/recording.h"
#include "sampler/remote/held_time.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// What one look found besides the samples.
struct TickOutcome {
  bool taken = false;          ///< stacks were copied, or needed no copy
  bool failed = false;         ///< a running thread's stack could not be copied
  bool marked = false;         ///< at least one without proof
  bool incomplete = false;     ///< at least one not reaching its thread's base, or with no name
  bool stale_threads = false;  ///< a thread appeared or went: refresh the table
  uint32_t retries = 0;        ///< copies repeated to get the proof
  Nanoseconds held{};          ///< how long the target waited for us
};

/// Under a GIL the holder is the subject: while it is held still nobody else can run bytecode, so
/// the stacks of the threads that ran lately are copied in the same pause. Without a GIL each
/// running thread is a subject of its own, those on different CPUs at once.
///
/// Start begins the copies, Finish takes them over: in between the pacer may sleep. Nothing of the
/// thread table may change meanwhile. [one thread: the pacer]
class TickSampler {
 public:
  TickSampler(RunContext& context, ThreadTable& threads, Pauser& pauser)
      : context_(context), threads_(threads), pauser_(pauser) {}
  ~TickSampler();

  void Start(const Tick& tick);
  bool started() const { return started_; }
  /// Waits for copies under way, repeats those without proof, yields the samples.
  TickOutcome Finish();

 private:
  /// One subject and what is copied with it.
  struct Look {
    LockDomain* domain = nullptr;
    SampledThread* subject = nullptr;
    std::vector<SampledThread*> others;
    std::vector<TaskLook> other_looks;  ///< as of the start of the copy
    CopyJob job;
    PauseTicket ticket;
    bool begun = false;   ///< a copy is under way or done
    bool copied = false;  ///< there is something to record
    HeldCopies held;
  };

  void StartLocked(LockDomain& domain);
  void StartFree(LockDomain& domain);
  Look& NewLook(LockDomain& domain);
  /// Chooses whom to look at under the lock. False when nobody ran, or the target is gone.
  bool Choose(Look& look);
  void Begin(Look& look);
  /// Ends the look's copy and repeats it until it is good or has been tried often.
  void Complete(Look& look);
  bool Good(const Look& look) const;
  /// Held still where there is no stack to see, inside the interpreter's own push or pop, every
  /// time: the thread waits for a CPU there. What was copied is no sample.
  bool IsHalfDone(const Look& look) const;
  void Record(Look& look);
  Nanoseconds HeldFor(Look& look);
  void TakeStack(const Look& look, SampledThread& thread, bool proved,
                 const std::optional<TaskLook>& seen);
  bool HoldsLock(const CopyJob& job, SampledThread& thread) const;

  std::optional<GilState> Peek(LockDomain& domain);
  SampledThread& ChooseSubject(LockDomain& domain, const GilState& gil);
  /// Fills `changed` with the threads but `subject` that ran, or may have.
  void CollectChanged(LockDomain& domain, bool switched, const SampledThread* subject,
                      std::vector<SampledThread*>& changed);

  RunContext& context_;
  ThreadTable& threads_;
  Pauser& pauser_;
  HeldTime held_time_;
  Tick tick_;
  TickOutcome outcome_;
  bool started_ = false;
  std::vector<std::unique_ptr<Look>> looks_;  // kept for their buffers
  size_t look_count_ = 0;                     // of them, used in this tick
  std::vector<SampledThread*> running_;
  std::vector<pyabi::ReadRequest> requests_;
};

}  // namespace pystrobe::remote
