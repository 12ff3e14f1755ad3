// SPDX-License-Identifier: Apache-2.0
//
// The command line: words in, options out, or an error that names the word. Nothing here looks at
// the machine, but for `run`, which finds the program to start. [main thread]
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/output_file.h"
#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"
#include "profiler/write/writer.h"
#include "sampler/remote/sampler.h"

namespace pystrobe::cli {

/// How a recording is looked at.
struct View {
  std::optional<Mode> mode;           ///< nullopt: what the recording has, wall time first
  bool idle = false;                  ///< --idle
  std::optional<std::string> thread;  ///< --thread
  int64_t since_ns = 0;
  std::optional<int64_t> until_ns;
  write::Unit unit = write::Unit::kSamples;
  std::optional<uint32_t> top;  ///< lines of the table; nullopt: those that matter
};

/// What `attach` and `run` share.
struct RecordOptions {
  remote::SamplerOptions sampler;
  View view;
  std::vector<OutputRequest> outputs;
  bool force = false;
  bool quiet = false;
  bool gpu = false;           ///< what a GPU does, too: `run --gpu`
  bool gpu_launches = false;  ///< of that, what it was given alone: `run --gpu-launches`
  bool is_large = false;      ///< what is recorded may be more than memory should hold
};

struct AttachOptions {
  pid_t pid = 0;
  RecordOptions record;
};

/// Calls are traced instead of threads sampled.
struct TraceOptions {
  std::string engine;
  bool builtins = false;
  std::vector<std::string> include, exclude;  ///< patterns
  bool stdlib = true;
  bool timeline = false;
  std::optional<uint32_t> max_depth;
  CallClock clock = CallClock::kBoth;
};

struct RunOptions {
  RecordOptions record;
  std::optional<std::string> python;  ///< --python
  bool in_process = false;            ///< --in-process; or `trace`
  bool follow_fork = false;           ///< --follow-fork
  std::optional<TraceOptions> trace;  ///< of the verb `trace`
  bool is_command = false;            ///< behind "--": any program, not an argument of Python's
  std::vector<std::string>
      program;  ///< script and arguments, "-m" module and arguments, or command
  /// Among those, where we have no output: what looks like one of ours, "-o" and a file.
  std::optional<std::array<std::string, 2>> misplaced;
};

struct DumpVerbOptions {
  pid_t pid = 0;
  bool json = false;
  bool locals = false;
  bool native = false;
  remote::PauseMode pause = remote::PauseMode::kAuto;
};

struct ReportOptions {
  std::string file;
  View view;
  std::vector<OutputRequest> outputs;
  bool force = false;
};

struct DoctorOptions {
  std::optional<pid_t> pid;
};

struct BenchOptions {
  std::vector<std::string> words;  ///< for the package, which has options of its own
};

/// Text to print instead of doing anything: --help or --version.
struct PrintAndExit {
  std::string text;
};

using Command = std::variant<PrintAndExit, AttachOptions, RunOptions, DumpVerbOptions,
                             ReportOptions, DoctorOptions, BenchOptions>;

/// Parses everything behind the program's name. Errors: kInvalidArgument.
Result<Command> ParseCommandLine(std::span<const std::string> words);

}  // namespace pystrobe::cli
