// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "cli/children.h"
#include "cli/forked.h"
#include "cli/message.h"
#include "cli/record.h"
#include "cli/run_command.h"
#include "cli/spawn.h"
#include "cli/verbs.h"
#include "profiler/base/proc.h"
#include "profiler/write/number_text.h"

namespace pystrobe::cli {
namespace {

constexpr int kExitCannotStart = 126;
constexpr int kExitNoCommand = 127;
constexpr Nanoseconds kShortestPause = std::chrono::milliseconds(1);
constexpr Nanoseconds kLongestPause = std::chrono::milliseconds(500);
/// After so long without an interpreter the user is told.
constexpr Nanoseconds kPatience = std::chrono::seconds(3);
/// How long the end of a process may take from its first sign to its last.
constexpr Nanoseconds kTimeToEnd = std::chrono::milliseconds(200);

/// What a program that is still starting looks like.
bool MayBecomePython(const Error& error) {
  return error.code == ErrorCode::kNotPython || error.code == ErrorCode::kUnsupported ||
         error.code == ErrorCode::kUnreadable;
}

void TellNothingSampled(const std::optional<Error>& last, Nanoseconds elapsed) {
  const std::string when = write::TimeText(static_cast<uint64_t>(elapsed.count()));
  if (!last) {
    PrintNote(fmt::format("nothing was sampled: the program ended after {}", when));
    return;
  }
  std::string hint;
  if (last->code == ErrorCode::kNotPython) {
    hint =
        "If it starts Python itself, as a shell does, let it become Python: sh -c 'exec python3 "
        "...'; or attach to that child's PID while it runs.";
  }
  PrintError(
      {last->code,
       fmt::format("nothing was sampled in the {} that the program took: {}", when, last->message),
       hint});
}

/// Attaches as soon as the child's interpreter is up. Tries often at first and seldom later, so
/// that a child which never becomes Python costs nothing to speak of. Nothing when the child ended
/// before or sampling is refused; says why.
std::unique_ptr<remote::Sampler> AttachWhenUp(pid_t child, const remote::SamplerOptions& options,
                                              ChildWatcher& watcher) {
  const Nanoseconds start = MonotonicNow();
  std::optional<Error> last;
  bool told = false;
  for (;;) {
    auto sampler = remote::Sampler::Attach(child, options);
    if (sampler) return *std::move(sampler);
    const bool may_come = MayBecomePython(sampler.error());
    // A child that is ending looks like no Python at all.
    if (watcher.WaitFor(may_come ? Nanoseconds(0) : kTimeToEnd)) {
      TellNothingSampled(last, MonotonicNow() - start);
      return nullptr;
    }
    if (!may_come) {
      PrintError(Wrap(sampler.error(), "the program runs, but is not sampled").error());
      return nullptr;
    }
    last = sampler.error();
    const Nanoseconds elapsed = MonotonicNow() - start;
    if (!told && elapsed > kPatience) {
      PrintError(Wrap(*last, "the program runs, but is not sampled so far").error());
      told = true;
    }
    watcher.WaitFor(std::clamp<Nanoseconds>(elapsed / 8, kShortestPause, kLongestPause));
  }
}

/// Waits for the child's end. kEndUnknown when nobody can tell it.
/// `children`: what there is to say of its own children.
ChildEnd EndOf(pid_t child, ChildWatcher* watcher, StopSignals& signals, std::string& children) {
  if (watcher != nullptr) {
    watcher->Wait();
  } else {
    WaitForEnd(child);
  }
  children = ChildTimeNote({}, ReadChildUse(child));
  // From the moment it is reaped its pid may be another process'.
  signals.StopForwarding();
  const auto end = Reap(child);
  if (!end) PrintError(end.error());
  return end.value_or(kEndUnknown);
}

/// Has the command sampled from inside, and its children made by fork, where that was asked for.
Result<void> GoInside(const RunOptions& options, RecordingSession& session,
                      std::vector<std::string>& command, ForChild& given,
                      std::optional<ForkedChildren>& forked) {
  const auto descriptor = session.LendRecording(CureInside(options, command.front()));
  if (!descriptor) return std::unexpected(descriptor.error());
  std::optional<std::string> children;
  if (options.follow_fork) {
    auto expected = ForkedChildren::Expect(options.record);
    if (!expected) return std::unexpected(expected.error());
    children = forked.emplace(*std::move(expected)).place();
  }
  command = CommandInside(command);
  given = {{"PYSTROBE_LAUNCH=" + SettingsInside(options, *descriptor, children)}, *descriptor};
  return {};
}

/// Where the program made no file of that name either, it was meant for us.
void NoteMisplaced(const RunOptions& options) {
  if (!options.misplaced || access(options.misplaced->back().c_str(), F_OK) == 0) return;
  PrintNote(fmt::format("'{}' was given to the program; options of pystrobe come before it",
                        fmt::join(*options.misplaced, " ")));
}

}  // namespace

int Run(const RunOptions& options) {
  StopSignals signals;
  const std::string executable = ReadLink("/proc/self/exe").value_or("");
  auto command = CommandToRun(options, kProcessEnvironment, executable);
  if (!command) {
    PrintError(command.error());
    return kExitFailure;
  }
  auto session = RecordingSession::Open(options.record, signals);
  if (!session) {
    PrintError(session.error());
    return ExitCodeFor(session.error());
  }
  ForChild given;
  std::optional<ForkedChildren> forked;
  if (options.in_process) {
    const auto inside = GoInside(options, **session, *command, given, forked);
    if (!inside) {
      PrintError(inside.error());
      return ExitCodeFor(inside.error());
    }
  }
  signals.Hold();
  const auto child =
      Spawn(*command, FindInvoker(geteuid(), kProcessEnvironment), signals.mask(), given);
  if (!child) {
    PrintError(child.error());
    return child.error().code == ErrorCode::kNotFound ? kExitNoCommand : kExitCannotStart;
  }
  signals.ForwardTo(*child);
  signals.Release();
  std::optional<remote::EndReason> end;
  std::unique_ptr<remote::Sampler> sampler;
  const auto watcher = ChildWatcher::Start(*child, signals.stop());
  if (options.in_process) {
    while (watcher && !(*session)->SecureLent() && !(*watcher)->WaitFor(kLongestPause)) continue;
  } else if (!watcher) {
    PrintError(Wrap(watcher.error(), "the program runs, but is not sampled").error());
  } else {
    sampler = AttachWhenUp(*child, options.record.sampler, **watcher);
  }
  if (sampler != nullptr) end = (*session)->Sample(*sampler, /*show_progress=*/false);
  std::string children;
  const ChildEnd ended = EndOf(*child, watcher ? watcher->get() : nullptr, signals, children);
  if (sampler == nullptr && !options.in_process) return ended.status;
  if (!children.empty() && !forked && !options.record.quiet) PrintNote(children);
  if (end == remote::EndReason::kTargetExecuted && !options.record.quiet) {
    PrintNote("the program replaced itself by another one (exec), which ended the sampling");
  }
  if (!options.record.quiet) NoteMisplaced(options);
  if (ended.signal != 0) (*session)->ReplaceCure(CureOfKilled(options));
  (*session)->Report(STDERR_FILENO);
  if (forked) forked->Report();
  // Last, since the table has pushed the program's own last words out of sight.
  const std::string end_note = EndNote(ended);
  if (!end_note.empty() && !options.record.quiet) PrintNote(end_note);
  return ended.status;
}

}  // namespace pystrobe::cli
