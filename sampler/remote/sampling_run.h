// SPDX-License-Identifier: Apache-2.0
//
// One run of the sampler from its first deadline to its end: what Sampler::Run does.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "sampler/remote/code_cache.h"
#include "sampler/remote/deadlines.h"
#include "sampler/remote/pauser.h"
#include "sampler/remote/rate_governor.h"
#include "sampler/remote/sampler.h"
#include "sampler/remote/thread_table.h"
#include "sampler/remote/tick_sampler.h"

namespace pystrobe::remote {

/// Start, Step until it gives a reason, Finish. The calling thread is the pacer: it keeps the
/// deadlines, and everything but the copies themselves happens on it. [one thread]
class SamplingRun {
 public:
  SamplingRun(const Target& target, const SamplerOptions& options, RecordingSink& sink,
              Quality& quality);

  Result<void> Start();
  /// Sleeps until the next deadline, takes over the look before and starts the next one. A value is
  /// the reason to end.
  Result<std::optional<EndReason>> Step(const std::atomic<bool>& stop);
  Result<void> Finish();

  /// Figures as of now.
  Progress MakeProgress();

 private:
  /// Fails when the way of pausing that was asked for cannot be had.
  Result<void> CheckPause() const;
  Metadata MakeMetadata() const;
  std::optional<EndReason> ReasonToEnd(Nanoseconds now, const std::atomic<bool>& stop) const;
  /// Takes over the copies that were started, and does what is due between deadlines.
  Result<std::optional<EndReason>> TakeOver();
  EndReason HowItEnded() const;
  std::optional<EndReason> RefreshThreads(Nanoseconds now);
  void Count(const TickOutcome& outcome);
  void UpdateFigures();
  Result<void> Append();

  const Target& target_;
  const SamplerOptions& options_;
  RecordingSink& sink_;
  Quality& quality_;

  ScopedPromptness prompt_;
  Nanoseconds own_cpu_start_;
  Nanoseconds start_;
  Tables tables_;
  std::vector<Sample> samples_;
  CodeCache codes_;
  RunContext context_;
  ThreadTable threads_;
  Pauser pauser_;
  TickSampler ticks_;
  Deadlines deadlines_;
  RateGovernor governor_;
  Tick tick_;
  Nanoseconds next_refresh_, next_stale_refresh_, next_append_;
};

}  // namespace pystrobe::remote
