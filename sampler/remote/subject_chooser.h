// SPDX-License-Identifier: Apache-2.0
//
// Who is to be looked at now: of all threads under a lock, those that ran since their last sample.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// Under a GIL its holder is the subject, or who had it last, and the others that ran are copied
/// with it. Where threads share no copy each that ran is a subject of its own. To find them costs a
/// microsecond or a few for each thread asked, so idle ones take turns: many after the lock changed
/// hands, a few otherwise. Those that run take turns too, where not all fit into one look.
///
/// It reads the lock and asks the kernel of the threads; it holds nobody, so what it says may have
/// passed by the time of the look. The domains and threads are the table's, which must not change
/// from Begin until the look is over. `tick` is that of the look, as far as its time is known.
/// [one thread: the pacer]
class SubjectChooser {
 public:
  SubjectChooser(const RunContext& context, const ThreadTable& threads)
      : context_(context), threads_(threads) {}

  /// Another look is begun.
  void Begin() { stale_threads_ = false; }

  /// What is held is the lock's holder, and others are copied with it; else each thread that ran is
  /// a subject.
  bool SharesCopies(const LockDomain& domain) const {
    return !domain.free_threaded() && context_.native == nullptr;
  }

  struct Choice {
    SampledThread* subject;
    uint64_t switch_number;  ///< of the lock
    bool may_have_run;       ///< the subject, or one of the others; else every stack is what it was
  };
  /// Where copies are shared. Fills `others` with who is copied along. Nullopt where the lock
  /// cannot be read: the target is gone.
  std::optional<Choice> Choose(LockDomain& domain, const Tick& tick,
                               std::vector<SampledThread*>& others);

  struct EachChoice {
    uint64_t switch_number;       ///< of the lock; 0 without one
    const SampledThread* holder;  ///< first of the subjects, if there are any: its look goes to
                                  ///< whoever has the lock by then. Null: none does
  };
  /// Where they are not. Fills `subjects`. Nullopt, and nothing is filled, as Choose.
  std::optional<EachChoice> ChooseEach(LockDomain& domain, const Tick& tick,
                                       std::vector<SampledThread*>& subjects);

  /// Looks were made without a choice: more of the other threads are to be asked at the next one.
  void NoteMadeAhead() { made_ahead_ = true; }
  /// Has the threads listed anew where the lock's holder is none of them.
  void SeekHolder(LockDomain& domain, const GilState& gil);
  /// Where the thread has ended: then it is not chosen again, and the threads are listed anew.
  void NoteIfGone(SampledThread& thread, const Tick& tick);
  /// The threads should be listed anew, as was found since Begin.
  bool stale_threads() const { return stale_threads_; }

 private:
  /// Whom CollectChanged asks.
  struct Extent {
    const SampledThread* subject;  ///< is not asked; null: all are
    bool many;                     ///< idle ones
  };

  std::optional<GilState> Peek(LockDomain& domain);
  SampledThread& SubjectOf(LockDomain& domain, const GilState& gil);
  /// Of threads under a lock.
  const SampledThread* CollectEach(LockDomain& domain, const GilState& gil, const Tick& tick,
                                   std::vector<SampledThread*>& subjects);
  /// Fills `changed` with the threads that ran, or may have.
  void CollectChanged(LockDomain& domain, const Extent& extent, const Tick& tick,
                      std::vector<SampledThread*>& changed);
  bool MayHaveRun(SampledThread& thread, const Tick& tick);
  /// The same, or it may before the time at which it is looked at.
  bool MayRun(SampledThread& thread, const Tick& tick);

  const RunContext& context_;
  const ThreadTable& threads_;
  bool stale_threads_ = false;
  bool made_ahead_ = false;  // since the other threads were last asked
  std::vector<pyabi::ReadRequest> requests_;
};

}  // namespace pystrobe::remote
