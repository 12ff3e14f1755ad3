// SPDX-License-Identifier: Apache-2.0
//
// From words to options: each value checked by itself, then the pairs that do not go together.
// Errors: kInvalidArgument. [any thread]
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace pystrobe::cli {

/// Words of the options that several verbs have, before they are understood.
struct RawOptions {
  std::string pid, file, python;
  std::string rate, duration, overhead, pause = "auto";
  std::vector<std::string> outputs;
  bool in_process = false, follow_fork = false, with_gpu = false, with_launches = false,
       native = false;
  std::string engine = "auto", max_depth, clock = "both";
  bool builtins = false, no_stdlib = false, timeline = false;
  std::vector<std::string> include, exclude;
  std::string format, mode, unit, thread, since, until, top;
  bool gpu = false, force = false, quiet = false, idle = false, json = false, locals = false;
};

/// "pystrobe: message", and what to do instead.
template <typename... Args>
std::unexpected<Error> Usage(std::string hint, fmt::format_string<Args...> format, Args&&... args) {
  return FailWithHint(ErrorCode::kInvalidArgument, std::move(hint), format,
                      std::forward<Args>(args)...);
}

Result<remote::PauseMode> UnderstandPause(const std::string& text);
/// Refuses --native where nothing stops threads by ptrace.
Result<void> CheckNative(const RawOptions& raw, remote::PauseMode pause);
Result<View> UnderstandView(const RawOptions& raw);
/// -f without -o stands for standard output.
Result<std::vector<OutputRequest>> UnderstandOutputs(const RawOptions& raw);
/// Refuses options that would have no effect, with the reason.
Result<void> CheckPairs(const RawOptions& raw, const std::vector<OutputRequest>& outputs);
/// Refuses formats that samples cannot fill.
Result<void> CheckSamples(const RecordOptions& options);
/// Whether a run from inside is by elapsed time: what is to be shown decides.
bool IsByWallTime(const View& view);
/// Refuses --follow-fork where it has no effect.
Result<void> CheckFollowFork(const RawOptions& raw, const RunOptions& options);
/// Refuses what means nothing inside.
Result<void> CheckInProcess(const RawOptions& raw, const RunOptions& options);
/// Refuses engines that there are none of, --mode gil, which calls do not tell, and --idle.
Result<TraceOptions> UnderstandTrace(const RawOptions& raw);
/// What `attach` and `run` share, of all that is above.
Result<RecordOptions> UnderstandRecord(const RawOptions& raw);

}  // namespace pystrobe::cli
