// SPDX-License-Identifier: Apache-2.0
//
// One look at the target: which thread to hold, copy, prove, try again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "profiler/model/recording.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// What one look found besides the samples.
struct TickOutcome {
  bool taken = false;          ///< stacks were copied, or needed no copy
  bool marked = false;         ///< at least one without proof
  bool incomplete = false;     ///< at least one that did not reach its thread's base
  bool stale_threads = false;  ///< a thread appeared or went: refresh the table
  uint32_t retries = 0;        ///< copies repeated to get the proof
  Nanoseconds held{};          ///< how long the target waited for us
};

/// Under a GIL the holder is the subject: while it is held still nobody else can run bytecode, so
/// the stacks of the threads that ran lately are copied in the same pause. Without a GIL each
/// running thread is a subject of its own. [one thread: the pacer]
class TickSampler {
 public:
  TickSampler(RunContext& context, ThreadTable& threads, Pauser& pauser)
      : context_(context), threads_(threads), pauser_(pauser) {}

  TickOutcome Take(const Tick& tick);

 private:
  void TakeLocked(LockDomain& domain, const Tick& tick, TickOutcome& outcome);
  void TakeFree(LockDomain& domain, const Tick& tick, TickOutcome& outcome);

  std::optional<GilState> Peek(LockDomain& domain);
  SampledThread& ChooseSubject(LockDomain& domain, const GilState& gil, TickOutcome& outcome) const;
  /// Fills others_ with the threads but `subject` that ran, or may have.
  void CollectChanged(LockDomain& domain, bool switched, const SampledThread* subject);
  /// Copies the subject and `others` once. True when it need not be tried again.
  bool TryCopy(LockDomain& domain, SampledThread& subject, std::span<SampledThread* const> others,
               PauseOutcome& pause);
  void Record(LockDomain& domain, SampledThread& subject, std::span<SampledThread* const> others,
              const PauseOutcome& pause, const Tick& tick, TickOutcome& outcome);
  void TakeStack(SampledThread& thread, bool proved, bool paused, const Tick& tick,
                 TickOutcome& outcome);
  bool HoldsLock(SampledThread& thread) const;

  RunContext& context_;
  ThreadTable& threads_;
  Pauser& pauser_;
  CopyJob job_;
  std::vector<SampledThread*> others_;
  std::vector<pyabi::ReadRequest> requests_;
};

}  // namespace pystrobe::remote
