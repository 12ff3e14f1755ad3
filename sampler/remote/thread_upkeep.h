// SPDX-License-Identifier: Apache-2.0
//
// What a run does between looks so that its table of threads stays true.
#pragma once

#include "sampler/remote/sleepers.h"
#include "sampler/remote/thread_table.h"

namespace pystrobe::remote {

/// Finds threads that are born, lets go of those that ended, sees that they have names. Each of
/// these has its own interval, and is done less often where it costs much: listing takes a
/// hundredth of the pacer's time, a tenth while threads are missing. [one thread: the pacer]
class ThreadUpkeep {
 public:
  ThreadUpkeep(RunContext& context, ThreadTable& threads);

  /// Lists all threads, before the first look. Fails as ThreadTable::Refresh.
  Result<void> Begin(const Tick& tick);
  /// The recording begins at `start`, when every thread was known.
  void BeginAt(Nanoseconds start);

  /// Does what is due at `now`, after the look at `tick` and before the next is begun. `stale`: it
  /// found a thread that the table lacks, or one that has ended. False when the target is gone.
  bool DoDue(Nanoseconds now, const Tick& tick, bool stale);

 private:
  bool LacksThreads(Nanoseconds now);
  bool Refresh(Nanoseconds now, const Tick& tick);

  RunContext& context_;
  ThreadTable& threads_;
  Sleepers sleepers_;
  Nanoseconds all_known_{};  // when no thread was missing from the table last
  Nanoseconds next_list_check_{}, next_refresh_{}, next_stale_refresh_{};
};

}  // namespace pystrobe::remote
