// SPDX-License-Identifier: Apache-2.0
//
// One look at the target: hold a thread, copy, prove, try again.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "profiler/model/recording.h"
#include "sampler/remote/held_time.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/subject_chooser.h"
#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// What one look found besides the samples.
struct TickOutcome {
  Nanoseconds time{};          ///< when the last copy was begun (CLOCK_MONOTONIC), else that asked
  Nanoseconds first{};         ///< when the first one was: of threads looked at one after the other
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
/// running thread is a subject of its own, those on different CPUs at once; and so it is where
/// native frames are asked for, as a thread's registers are read of that thread alone.
///
/// Start begins the copies, Finish takes them over: in between the pacer may sleep. Nothing of the
/// thread table may change meanwhile.
///
/// A thread that keeps the lock while all others sleep needs no choosing: its looks are begun
/// several deadlines ahead, and the pacer sleeps through them. The copies bring the lock's count of
/// hand-overs, so the first look that should have been chosen anew is known, and ends the rest. The
/// looks made, the first one included, are then taken over with FinishMade, each as of its own
/// time; those that are not good have no sample, for a copy made later would come out of order.
/// [one thread: the pacer]
class TickSampler {
 public:
  TickSampler(RunContext& context, ThreadTable& threads, Pauser& pauser)
      : context_(context), threads_(threads), pauser_(pauser), chooser_(context, threads) {}
  ~TickSampler();

  void Start(const Tick& tick);
  bool started() const { return started_; }
  /// Begins a further look like the one just started, at `at` (CLOCK_MONOTONIC, rising). False, and
  /// nothing happens, unless that look will do without choosing, or when there are enough of them.
  bool StartAhead(Nanoseconds at);
  /// Waits for copies under way, repeats those without proof, yields the samples: each as of when
  /// its copy was begun, for the CPU may have been given to us long after we asked.
  TickOutcome Finish();

  /// Takes back the looks ahead whose time has not come, and waits for the others. Returns how many
  /// were made, not counting the first one. Where there are any, FinishMade is called instead of
  /// Finish.
  size_t EndAhead();
  /// Of the looks made: 0 is the one that Start began.
  bool IsGood(size_t i) { return Good(Made(i)); }
  Nanoseconds TimeOf(size_t i) { return Made(i).job.began; }
  /// How long the target waited for a look that is not good.
  Nanoseconds HeldInVain(size_t i) { return HeldFor(Made(i), std::nullopt); }
  /// Yields the sample of a good look, as of `tick`.
  TickOutcome FinishMade(size_t i, const Tick& tick);
  /// As Quality::held_each, of all looks until now.
  const DurationHistogram& held_each() const { return held_each_; }

 private:
  /// One subject and what is copied with it.
  struct Look {
    LockDomain* domain = nullptr;
    SampledThread* subject = nullptr;
    std::vector<SampledThread*> others;
    uint64_t switch_number = 0;  ///< of the lock, when the subject was chosen
    CopyJob job;
    PauseTicket ticket;
    bool was_awake = false;     ///< the subject, when it was looked at first
    bool follows_lock = false;  ///< who has the lock when it is made is the subject
    bool turned = false;        ///< another one had the lock by then: that is the subject now
    bool begun = false;         ///< a copy is under way or done
    uint32_t tries = 0;         ///< copies made of this subject
    bool copied = false;        ///< there is something to record
    HeldCopies held;
    bool has_asleep = false;  ///< `asleep` is of the subject, as it slept when it was chosen
    CopyJob asleep;
    ThreadCopy asleep_copy;
  };

  struct AheadLook {
    Look look;
    ThreadCopy copy;  ///< until it is the subject's turn to have it
  };

  void StartLooks();
  void StartLocked(LockDomain& domain);
  void StartEach(LockDomain& domain);
  void BeginIfFree(Look& look);
  Look& NewLook(LockDomain& domain, SampledThread* subject);
  static void Reset(Look& look, LockDomain& domain, SampledThread* subject);
  /// Chooses whom to look at under the lock. False when nobody ran, or the target is gone.
  bool Choose(Look& look);
  /// The same where another copy is needed.
  bool ChooseAgain(Look& look);
  /// The copy just made is `subject`'s.
  void TurnTo(Look& look, SampledThread& subject);
  /// What was copied of a subject is settled with that one's wait, not with the next one's.
  void Settle(Look& look);
  void Begin(Look& look);
  /// Where threads are stopped by ptrace: copies a subject that sleeps without stopping it, for
  /// some system calls fail when their thread is stopped (epoll_wait with EINTR, signal(7)). False
  /// when it may have woken meanwhile.
  bool CopyAsleep(Look& look);
  /// Of who sleeps when it is chosen, and will be looked at later: what is to be seen where our
  /// coming wakes it.
  bool CopyBeforeItWakes(Look& look);
  /// Who slept on the CPU that we have now is awake on another: there was no room for it here, so
  /// it has woken since we came, as a rule because its timer was near and our interrupt did for
  /// both. What it does next is not to be seen more often for that.
  void TakeAsItSlept(Look& look);
  /// How many looks may follow this one without choosing.
  size_t MostAhead(const Look& look) const;
  Look& Made(size_t i) { return i == 0 ? *looks_.front() : ahead_[i - 1]->look; }
  /// Ends the look's copy and repeats it until it is good or has been tried often.
  void Complete(Look& look);
  /// Ends the look's copy.
  void EndCopy(Look& look);
  bool Good(const Look& look) const;
  /// Held still where there is no stack to see, inside the interpreter's own push or pop, every
  /// time: the thread waits for a CPU there. What was copied is no sample.
  static bool IsHalfDone(const Look& look);
  void Record(Look& look);
  /// Where another copy is needed of who has taken the lock: who let go of it was held, and what it
  /// does by then is another matter.
  void RecordWhoLetGo(Look& look);
  /// What is recorded next was copied then.
  void SetTime(Nanoseconds copied);
  /// `waited`: of the sample that came of it, where one did.
  Nanoseconds HeldFor(Look& look, const std::optional<Waiting>& waited);
  static std::optional<Waiting> WaitedFor(Look& look);
  static std::optional<TaskLook> SubjectLook(const Look& look);
  /// False when there was nothing to take.
  bool TakeStack(const Look& look, SampledThread& thread, bool proved,
                 const std::optional<TaskLook>& seen);

  /// The stack's callers are missing, whatever its end looks like.
  bool IsPiece(const ThreadCopy& copy);

  RunContext& context_;
  ThreadTable& threads_;
  Pauser& pauser_;
  SubjectChooser chooser_;
  HeldTime held_time_;
  DurationHistogram held_each_;
  Tick tick_;
  TickOutcome outcome_;
  Nanoseconds asked_{};    // tick_.time, before anything was copied
  bool has_time_ = false;  // a copy was recorded in this tick
  bool started_ = false;
  std::vector<std::unique_ptr<Look>> looks_;  // kept for their buffers
  size_t look_count_ = 0;                     // of them, used in this tick
  std::vector<std::unique_ptr<AheadLook>> ahead_;
  size_t ahead_count_ = 0;   // of them, begun
  size_t ahead_most_ = 0;    // that may be begun after the look just started
  size_t calm_looks_ = 0;    // one after the other that needed no choosing; the last look included
  size_t calm_before_ = 0;   // as it was before the look under way
  size_t calm_needed_ = 0;   // so many before a look are needed for others to be made ahead
  size_t bytes_copied_ = 0;  // by the last look, of the subject's stack
  std::vector<SampledThread*> running_;  // to be looked at, each by itself
};

}  // namespace pystrobe::remote
