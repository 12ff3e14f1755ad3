// SPDX-License-Identifier: Apache-2.0
//
// One run of the sampler from its first deadline to its end: what Sampler::Run does.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "sampler/remote/code_cache.h"
#include "sampler/remote/deadlines.h"
#include "sampler/remote/native_stacks.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/promptness.h"
#include "sampler/remote/rate_governor.h"
#include "sampler/remote/sampler.h"
#include "sampler/remote/thread_table.h"
#include "sampler/remote/thread_upkeep.h"
#include "sampler/remote/tick_sampler.h"

namespace pystrobe::remote {

/// Start, Step until it gives a reason, Finish. The calling thread is the pacer: it keeps the
/// deadlines, and everything but the copies themselves happens on it. [one thread]
class SamplingRun {
 public:
  SamplingRun(const Target& target, const SamplerOptions& options, RecordingSink& sink,
              Quality& quality);

  Result<void> Start();
  /// Sleeps until shortly before the next deadline that is not taken care of, takes over the looks
  /// before it and starts the next ones. A value is the reason to end.
  Result<std::optional<EndReason>> Step(const std::atomic<bool>& stop);
  Result<void> Finish(ProgressCallback progress);
  /// The sink's last answer was an error: it must not be called any more.
  bool sink_failed() const { return sink_failed_; }

  /// Figures as of now.
  Progress MakeProgress();

 private:
  /// Looks made ahead that came to nothing.
  struct Missed {
    uint64_t count = 0;
    Nanoseconds due_by{};  ///< of the last of them
    Nanoseconds held{};    ///< how long the target waited for them all
  };

  void Begin();
  /// Copies and the sink go by the deadlines' rate from here on.
  void ApplyRate();
  Metadata MakeMetadata() const;
  std::optional<EndReason> ReasonToEnd(Nanoseconds now, const std::atomic<bool>& stop) const;
  /// Begins looks at the deadlines that follow `now` closely.
  void StartAhead(Nanoseconds now);
  void CountLost(uint64_t deadlines);
  /// Takes over the looks that were started, and does what is due between deadlines.
  Result<std::optional<EndReason>> TakeOver();
  Result<std::optional<EndReason>> TakeLooks();
  /// Takes over the look that was started and so many that were made ahead after it.
  Result<std::optional<EndReason>> TakeMade(size_t ahead);
  /// The time from which on a look at the next deadline is late.
  Nanoseconds NextDueBy() const;
  void NextTick(Nanoseconds time, Nanoseconds due_by);
  void TakeLastLook();
  /// What the sampler's own threads have used.
  Nanoseconds OwnCpu();
  void AddUnsampled();
  void ReadProcessCpu();
  Result<std::optional<EndReason>> MakeUpFor(const Missed& missed);
  Result<std::optional<EndReason>> Take(const TickOutcome& outcome);
  EndReason HowItEnded() const;
  void Count(const TickOutcome& outcome);
  void UpdateFigures(Nanoseconds now);
  /// Gives the sink what is finished.
  Result<void> Append(Nanoseconds now);
  /// How many samples, from the first on, have their stacks.
  size_t CountFinished() const;
  /// Gives samples their stacks, as far as these can be made.
  void MakeStacks();
  /// Waits until all can be made, or `progress` has no more of it.
  void WaitForStacks(ProgressCallback progress);

  const Target& target_;
  const SamplerOptions& options_;
  RecordingSink& sink_;
  Quality& quality_;

  ScopedPromptness prompt_;
  const bool own_process_;
  Nanoseconds own_cpu_start_;  // of the pacer's thread where the process is the target's too
  Nanoseconds start_;
  Tables tables_;
  std::vector<Sample> samples_;
  CodeCache codes_;
  std::unique_ptr<NativeStacks> native_;  // where asked for
  RunContext context_;
  ThreadTable threads_;
  Pauser pauser_;
  TickSampler ticks_;
  ThreadUpkeep upkeep_;
  Deadlines deadlines_;
  RateGovernor governor_;
  Tick tick_;
  std::optional<Nanoseconds> process_cpu_start_, process_cpu_;  // of the target; the last known
  size_t ahead_ = 0;            // deadlines from next() on that have been taken care of
  bool stale_threads_ = false;  // as the looks just taken over found
  size_t waiting_ = 0;          // of samples_, for their stacks, when they were appended last
  Nanoseconds previous_{};      // when the first thread was looked at in the tick before
  bool sink_failed_ = false;
  Nanoseconds next_append_;
};

}  // namespace pystrobe::remote
