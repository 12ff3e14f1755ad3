// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sampler.h"

#include <tuple>

#include "sampler/remote/permission.h"
#include "sampler/remote/sampling_run.h"

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kProgressInterval = std::chrono::milliseconds(500);

}  // namespace

struct Sampler::Impl {
  Target target;
  SamplerOptions options;
  Quality quality;
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::Attach(pid_t pid, const SamplerOptions& options) {
  auto target = Target::Open(pid);
  if (!target) return std::unexpected(target.error());
  if (options.pause == PauseMode::kPtrace || options.native) {
    if (auto free = CheckFreeToTrace(pid); !free) return std::unexpected(free.error());
  }
  auto impl = std::make_unique<Impl>(Impl{std::move(*target), options, {}});
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

const TargetInfo& Sampler::target() const { return impl_->target.info(); }
const Quality& Sampler::quality() const { return impl_->quality; }

Result<EndReason> Sampler::Run(RecordingSink& sink, const std::atomic<bool>& stop,
                               ProgressCallback progress) {
  impl_->quality = {};
  SamplingRun run(impl_->target, impl_->options, sink, impl_->quality);
  if (auto started = run.Start(); !started) return std::unexpected(started.error());
  Nanoseconds next_progress = MonotonicNow() + kProgressInterval;
  for (;;) {
    auto reason = run.Step(stop);
    if (!reason) {
      // What was sampled is kept, whatever ended it; unless it is the sink that takes no more.
      if (!run.sink_failed()) std::ignore = run.Finish(progress);
      return std::unexpected(reason.error());
    }
    if (*reason) {
      if (auto finished = run.Finish(progress); !finished) return std::unexpected(finished.error());
      return **reason;
    }
    if (Nanoseconds now = MonotonicNow(); now >= next_progress) {
      progress(run.MakeProgress());
      next_progress = now + kProgressInterval;
    }
  }
}

}  // namespace pystrobe::remote
