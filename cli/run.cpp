// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "cli/message.h"
#include "cli/record.h"
#include "cli/run_command.h"
#include "cli/spawn.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace pystrobe::cli {
namespace {

constexpr int kExitCannotStart = 126;
constexpr int kExitNoCommand = 127;

/// What a program that is still starting looks like.
bool MayBecomePython(const Error& error) {
  return error.code == ErrorCode::kNotPython || error.code == ErrorCode::kUnsupported ||
         error.code == ErrorCode::kUnreadable;
}

/// Attaches as soon as the child's interpreter is up. Tries often at first and seldom later, so
/// that a child which never becomes Python costs nothing to speak of. Nothing when the child ended
/// before or sampling is refused; says why.
std::unique_ptr<remote::Sampler> AttachWhenUp(pid_t child, const remote::SamplerOptions& options,
                                              ChildWatcher& watcher) {
  const Nanoseconds start = MonotonicNow();
  bool told = false;
  for (;;) {
    auto sampler = remote::Sampler::Attach(child, options);
    if (sampler) return *std::move(sampler);
    const Error& error = sampler.error();
    const Nanoseconds elapsed = MonotonicNow() - start;
    const Nanoseconds pause = std::clamp<Nanoseconds>(elapsed / 8, std::chrono::milliseconds(1),
                                                      std::chrono::milliseconds(500));
    if (watcher.WaitFor(MayBecomePython(error) ? pause : Nanoseconds(0))) {
      PrintError({error.code,
                  fmt::format("nothing was sampled: the program ended after {}; last seen: {}",
                              TimeText(static_cast<uint64_t>(elapsed.count())), error.message),
                  {}});
      return nullptr;
    }
    if (!MayBecomePython(error)) {
      PrintError(Wrap(error, "the program runs, but is not sampled").error());
      return nullptr;
    }
    if (!told && elapsed > std::chrono::seconds(3)) {
      PrintError(Wrap(error, "the program runs, but is not sampled so far").error());
      told = true;
    }
  }
}

}  // namespace

int Run(const RunOptions& options) {
  StopSignals signals;
  const auto command = CommandToRun(options, kProcessEnvironment);
  if (!command) {
    PrintError(command.error());
    return kExitFailure;
  }
  auto session = RecordingSession::Open(options.record, signals);
  if (!session) {
    PrintError(session.error());
    return ExitCodeFor(session.error());
  }
  signals.Hold();
  const auto child = Spawn(*command, FindInvoker(geteuid(), kProcessEnvironment), signals.mask());
  if (!child) {
    PrintError(child.error());
    return child.error().code == ErrorCode::kNotFound ? kExitNoCommand : kExitCannotStart;
  }
  signals.ForwardTo(*child);
  signals.Release();
  ChildWatcher watcher(*child, signals.stop());
  std::optional<remote::EndReason> end;
  const auto sampler = AttachWhenUp(*child, options.record.sampler, watcher);
  if (sampler != nullptr) end = (*session)->Sample(*sampler, /*show_progress=*/false);
  const int status = watcher.Reap();
  signals.StopForwarding();
  if (sampler == nullptr) return status;
  if (end == remote::EndReason::kTargetExecuted && !options.record.quiet) {
    PrintNote("the program replaced itself by another one (exec), which ended the sampling");
  }
  (*session)->Report(STDERR_FILENO);
  return status;
}

}  // namespace pystrobe::cli
