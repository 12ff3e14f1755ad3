// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/signal_sampler.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "sampler/remote/target.h"
#include "sampler/signal/signal_run.h"

namespace pystrobe::signals {
namespace {

// More than any program has on its stacks; 1 MiB, where they are used.
constexpr size_t kKnownCodes = 65536;

}  // namespace

struct SignalSampler::Impl {
  remote::Target target;
  SignalOptions options;
  CpuSource source;
};

SignalSampler::SignalSampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SignalSampler::~SignalSampler() = default;

Result<std::unique_ptr<SignalSampler>> SignalSampler::Open(const SignalOptions& options) {
  auto target = remote::Target::Open(getpid());
  if (!target) return std::unexpected(target.error());
  const auto source = FindCpuSource();
  if (!source) return std::unexpected(source.error());
  return std::unique_ptr<SignalSampler>(
      new SignalSampler(std::make_unique<Impl>(*std::move(target), options, *source)));
}

Result<void> SignalSampler::Run(RecordingSink& sink, const std::atomic<bool>& stop) {
  auto known = KnownCodes::Make(kKnownCodes);
  if (!known) return std::unexpected(known.error());
  std::unique_ptr<NativeFrames> native;
  if (impl_->options.native) {
    auto opened = NativeFrames::Open(impl_->target);
    if (!opened) return std::unexpected(opened.error());
    native = *std::move(opened);
  }
  auto dispatcher = Dispatcher::Install();
  if (!dispatcher) return std::unexpected(dispatcher.error());
  SignalRun run(impl_->target, impl_->options, impl_->source, *std::move(known), std::move(native),
                *std::move(dispatcher), sink);
  Result<void> result = run.Start();
  while (result && !stop.load(std::memory_order_relaxed)) result = run.Step();
  return result ? run.Finish() : result;
}

void SignalSampler::Abandon() { Dispatcher::Abandon(); }

}  // namespace pystrobe::signals
