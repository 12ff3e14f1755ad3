// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/children.h"
#include "cli/message.h"
#include "cli/record.h"
#include "cli/verbs.h"
#include "profiler/base/proc.h"
#include "profiler/print/text.h"
#include "profiler/write/number_text.h"
#include "sampler/remote/permission.h"

namespace pystrobe::cli {
namespace {

void Announce(const AttachOptions& options, const remote::TargetInfo& target) {
  const auto& duration = options.record.sampler.duration;
  const std::string until =
      duration ? fmt::format(" for {}; Ctrl-C stops earlier",
                             write::TimeText(static_cast<uint64_t>(duration->count())))
               : "; Ctrl-C stops and reports";
  PrintNote(fmt::format(
      "sampling {} ({}){}", options.pid,
      print::CutEnd(print::CommandText(target.command, target.executable, "..."), 40, "..."),
      until));
}

/// A table of one line, or none, is not what one would expect.
void TellIfStopped(pid_t pid) {
  const auto stat = ReadTaskStat(pid, pid);
  if (!stat || (stat->state != 'T' && stat->state != 't')) return;
  const std::string tracer = remote::TracerOf(pid);
  PrintNote(fmt::format("process {} is stopped{}: every sample shows it where it stands; {}", pid,
                        tracer.empty() ? "" : " by " + tracer,
                        tracer.empty() ? fmt::format("to go on: kill -CONT {}", pid)
                                       : "it goes on when that lets it"));
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
  if (!options.record.quiet) {
    Announce(options, (*sampler)->target());
    TellIfStopped(options.pid);
  }
  const ChildUse before = ReadChildUse(options.pid);
  const auto end = (*session)->Sample(**sampler, /*show_progress=*/true);
  if (!options.record.quiet) {
    TellEnd(end, options.pid);
    const std::string note = ChildrenNote(options.pid, before);
    if (!note.empty()) PrintNote(note);
  }
  return (*session)->Report(STDOUT_FILENO) ? kExitOk : kExitFailure;
}

}  // namespace pystrobe::cli
