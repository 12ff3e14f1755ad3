// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/message.h"
#include "cli/record.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {
namespace {

void Announce(const AttachOptions& options, const remote::TargetInfo& target) {
  const auto& duration = options.record.sampler.duration;
  const std::string until =
      duration ? fmt::format(" for {}; Ctrl-C stops earlier",
                             write::TimeText(static_cast<uint64_t>(duration->count())))
               : "; Ctrl-C stops and reports";
  PrintNote(fmt::format("sampling {} ({}){}", options.pid,
                        CutEnd(CommandText(target.command, target.executable), 40, "..."), until));
}

void TellEnd(const std::optional<remote::EndReason>& end, pid_t pid) {
  if (end == remote::EndReason::kTargetExited) {
    PrintNote(fmt::format("process {} ended, and the sampling with it", pid));
  } else if (end == remote::EndReason::kTargetExecuted) {
    PrintNote(fmt::format(
        "process {} replaced its program by another one, which ended the sampling; attach again "
        "to sample that one",
        pid));
  }
}

}  // namespace

int Attach(const AttachOptions& options) {
  StopSignals signals;
  auto session = RecordingSession::Open(options.record, signals);
  if (!session) {
    PrintError(session.error());
    return ExitCodeFor(session.error());
  }
  auto sampler = remote::Sampler::Attach(options.pid, options.record.sampler);
  if (!sampler) {
    PrintError(sampler.error());
    return ExitCodeFor(sampler.error());
  }
  if (!options.record.quiet) Announce(options, (*sampler)->target());
  const auto end = (*session)->Sample(**sampler, /*show_progress=*/true);
  if (!options.record.quiet) TellEnd(end, options.pid);
  return (*session)->Report(STDOUT_FILENO) ? kExitOk : kExitFailure;
}

}  // namespace pystrobe::cli
