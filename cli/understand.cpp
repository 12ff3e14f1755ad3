// SPDX-License-Identifier: Apache-2.0
#include "cli/understand.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/values.h"

namespace pystrobe::cli {

namespace {

/// As far as the names tell.
bool SameFile(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).lexically_normal() == std::filesystem::path(b).lexically_normal();
}

/// Names that the kernel has for it; what is written to one of them is not to be mixed with a
/// table.
bool IsStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

}  // namespace

Result<remote::PauseMode> UnderstandPause(const std::string& text) {
  if (auto mode = remote::PauseModeByName(text)) return *mode;
  return Usage("It is one of auto, preempt, ptrace, none.", "--pause '{}' is not known", text);
}

Result<void> CheckNative(const RawOptions& raw, remote::PauseMode pause) {
  if (!raw.native || pause == remote::PauseMode::kAuto || pause == remote::PauseMode::kPtrace) {
    return {};
  }
  return Usage("Leave one of them out.", "--native stops threads by ptrace, not by --pause {}",
               raw.pause);
}

Result<View> UnderstandView(const RawOptions& raw) {
  View view;
  if (!raw.mode.empty()) {
    view.mode = ModeByName(raw.mode);
    if (!view.mode) {
      return Usage("It is one of wall, cpu, gil; of what a GPU did also gpu.",
                   "mode '{}' is not known", raw.mode);
    }
  }
  if (raw.gpu && view.mode.value_or(Mode::kGpu) != Mode::kGpu) {
    return Usage("Leave one of them out.", "--gpu is short for --mode gpu, not for --mode {}",
                 raw.mode);
  }
  if (raw.gpu) view.mode = Mode::kGpu;
  view.idle = raw.idle;
  if (!raw.thread.empty()) view.thread = raw.thread;
  if (!raw.top.empty()) {
    auto top = ParseCount("--top", raw.top);
    if (!top) return std::unexpected(top.error());
    view.top = *top;
  }
  if (!raw.unit.empty()) {
    const auto unit = write::UnitByName(raw.unit);
    if (!unit) return Usage("It is one of samples, us, ns.", "--unit '{}' is not known", raw.unit);
    view.unit = *unit;
  }
  if (!raw.since.empty()) {
    auto since = ParseDuration("--since", raw.since, true);
    if (!since) return std::unexpected(since.error());
    view.since_ns = since->count();
  }
  if (!raw.until.empty()) {
    auto until = ParseDuration("--until", raw.until);
    if (!until) return std::unexpected(until.error());
    view.until_ns = until->count();
    if (*view.until_ns <= view.since_ns) {
      return Usage("Both count from the start of the recording.",
                   "--until {} is not after --since {}", raw.until, raw.since);
    }
  }
  return view;
}

Result<std::vector<OutputRequest>> UnderstandOutputs(const RawOptions& raw) {
  std::optional<write::Format> named;
  if (!raw.format.empty()) {
    named = write::FormatByName(raw.format);
    if (!named) {
      return Usage(
          "It is one of html, strobe, speedscope, pprof, collapsed, json; of calls also "
          "callgrind, pstats, trace-events, perfetto.",
          "format '{}' is not known", raw.format);
    }
    if (raw.outputs.size() > 1) {
      return Usage("Leave -f out: the names tell the formats.",
                   "-f {} names one format for {} outputs", raw.format, raw.outputs.size());
    }
    if (raw.outputs.empty()) return std::vector{OutputRequest{"-", *named}};
  }
  std::vector<OutputRequest> outputs;
  for (const std::string& name : raw.outputs) {
    const std::string path = IsStandardOutput(name) ? "-" : name;
    const auto format = named ? named : write::FormatByFileName(path);
    if (!format) {
      return Usage(
          "End it in .html, .strobe, .speedscope.json, .pb.gz, .collapsed or .json, of calls also "
          ".callgrind .pstats .trace.json or .perfetto-trace, or name the format with -f.",
          "the name of {} does not tell its format", path == "-" ? "standard output" : path);
    }
    for (const OutputRequest& other : outputs) {
      if (SameFile(other.path, path)) return Usage("Name it once.", "-o {} is given twice", path);
      if (other.format == write::Format::kStrobe && format == write::Format::kStrobe) {
        return Usage(fmt::format("Copy it afterwards: cp {} {}", other.path, path),
                     "-o {} and -o {} would both hold the recording", other.path, path);
      }
    }
    outputs.push_back({path, *format});
  }
  return outputs;
}

Result<void> CheckPairs(const RawOptions& raw, const std::vector<OutputRequest>& outputs) {
  const auto is_for = [&](write::Format format) {
    return std::any_of(outputs.begin(), outputs.end(),
                       [format](const OutputRequest& output) { return output.format == format; });
  };
  if (!raw.unit.empty() && !is_for(write::Format::kCollapsed)) {
    return Usage("Add -o FILE.collapsed or -f collapsed, or leave --unit out.",
                 "--unit {} concerns collapsed stacks, and none are written", raw.unit);
  }
  if (raw.force && raw.outputs.empty()) {
    return Usage("Add -o FILE, or leave --force out.",
                 "--force allows overwriting files, but no -o names one");
  }
  if (raw.quiet && !raw.top.empty()) {
    return Usage("Leave one of them out.", "--top {} concerns the table, which -q leaves out",
                 raw.top);
  }
  if (raw.pause == "none" && !raw.overhead.empty()) {
    return Usage("Set the rate with -r.",
                 "with --pause none nothing is held, so --max-overhead {} limits nothing",
                 raw.overhead);
  }
  return {};
}

Result<void> CheckSamples(const RecordOptions& options) {
  for (const OutputRequest& output : options.outputs) {
    const bool is_of_timeline = write::IsOfTimeline(output.format);
    if (!write::IsOfCalls(output.format) && !is_of_timeline) continue;
    if (is_of_timeline && options.gpu_launches) {
      return Usage("Give --gpu instead.",
                   "-o {} would hold when kernels ran, which --gpu-launches does not tell",
                   output.path);
    }
    if (is_of_timeline && options.gpu) continue;
    return Usage("Trace the program: pystrobe trace.",
                 "-o {} would hold calls of functions, which samples do not tell", output.path);
  }
  return {};
}

bool IsByWallTime(const View& view) { return view.mode.value_or(Mode::kCpu) != Mode::kCpu; }

Result<void> CheckFollowFork(const RawOptions& raw, const RunOptions& options) {
  if (!raw.follow_fork) return {};
  if (!options.in_process) {
    return Usage("Add --in-process; from outside attach to them while they run.",
                 "--follow-fork is for sampling from inside, which goes on in child processes");
  }
  if (options.record.outputs.empty()) {
    return Usage("Name one with -o: beside out.strobe children write out.PID.strobe.",
                 "--follow-fork needs a file");
  }
  return {};
}

Result<void> CheckInProcess(const RawOptions& raw, const RunOptions& options) {
  const std::string_view asked = raw.in_process ? "--in-process"
                                 : raw.with_gpu ? "--gpu"
                                                : "--gpu-launches";
  if (options.is_command) {
    return Usage(
        "Name a script or -m and a module; or set PYSTROBE_ENABLE for the command, and have "
        "it import pystrobe.auto.",
        "{} needs to know the interpreter, and '{}' is a command of its own", asked,
        options.program[0]);
  }
  if (raw.pause != "auto") {
    return Usage("Leave one of them out.", "--pause {} concerns sampling from outside", raw.pause);
  }
  if (!raw.duration.empty()) {
    return Usage("Leave one of them out.", "{} samples to the end, so -d {} has no use", asked,
                 raw.duration);
  }
  if (raw.native && IsByWallTime(options.record.view)) {
    return Usage("Leave one of them out.", "--native is for CPU time, not for --mode {}", raw.mode);
  }
  if (!raw.overhead.empty() && !IsByWallTime(options.record.view)) {
    return Usage("Set the rate with -r, or add --mode wall.",
                 "by CPU time nothing is held, so --max-overhead {} limits nothing", raw.overhead);
  }
  return {};
}

Result<TraceOptions> UnderstandTrace(const RawOptions& raw) {
  constexpr std::string_view kEngines[] = {"auto", "setprofile", "frame-eval", "monitoring"};
  if (std::ranges::find(kEngines, raw.engine) == std::end(kEngines)) {
    return Usage(fmt::format("It is one of {}.", fmt::join(kEngines, ", ")),
                 "--engine '{}' is not known", raw.engine);
  }
  if (raw.builtins && raw.engine == "frame-eval") {
    return Usage("Leave one of them out.",
                 "frame evaluation tells of no functions of C, so --builtins has no effect");
  }
  if (raw.mode == "gil") {
    return Usage("It is one of wall, cpu.",
                 "traced calls do not tell who had the interpreter's lock: --mode gil");
  }
  if (!raw.mode.empty() && raw.mode != "wall" && raw.mode != "cpu") {
    return Usage("It is one of wall, cpu.", "mode '{}' is not known", raw.mode);
  }
  if (raw.idle) {
    return Usage("Leave it out.",
                 "--idle has no effect: no thread whose calls are traced is left "
                 "out as idle");
  }
  std::optional<uint32_t> max_depth;
  if (!raw.max_depth.empty()) {
    auto depth = ParseDepth("--max-depth", raw.max_depth);
    if (!depth) return std::unexpected(depth.error());
    max_depth = *depth;
  }
  const auto clock = ClockByName(raw.clock);
  if (!clock) {
    return Usage("It is one of both, wall, cpu.", "--clock '{}' is not known", raw.clock);
  }
  if (clock == CallClock::kWall && raw.mode == "cpu") {
    return Usage("Leave one of them out.",
                 "--clock wall has no CPU time read, which --mode cpu would show");
  }
  return TraceOptions{.engine = raw.engine,
                      .builtins = raw.builtins,
                      .include = raw.include,
                      .exclude = raw.exclude,
                      .stdlib = !raw.no_stdlib,
                      .timeline = raw.timeline,
                      .max_depth = max_depth,
                      .clock = *clock};
}

Result<RecordOptions> UnderstandRecord(const RawOptions& raw) {
  RecordOptions options;
  constexpr double kDefaultShare = 0.01;
  auto pause = UnderstandPause(raw.pause);
  if (!pause) return std::unexpected(pause.error());
  if (auto fits = CheckNative(raw, *pause); !fits) return std::unexpected(fits.error());
  options.sampler.pause = *pause;
  options.sampler.native = raw.native;
  options.sampler.pystrobe_version = PYSTROBE_VERSION;
  options.sampler.max_overhead = kDefaultShare;
  if (*pause == remote::PauseMode::kNone) options.sampler.max_overhead = 0;
  if (!raw.rate.empty()) {
    auto rate = ParseRate(raw.rate);
    if (!rate) return std::unexpected(rate.error());
    options.sampler.rate_hz = *rate;
    options.sampler.max_overhead = 0;
  }
  if (!raw.overhead.empty()) {
    auto share = ParseShare("--max-overhead", raw.overhead);
    if (!share) return std::unexpected(share.error());
    options.sampler.max_overhead = *share;
  }
  if (!raw.duration.empty()) {
    auto duration = ParseDuration("-d", raw.duration);
    if (!duration) return std::unexpected(duration.error());
    options.sampler.duration = *duration;
  }
  auto view = UnderstandView(raw);
  if (!view) return std::unexpected(view.error());
  options.view = *std::move(view);
  if (options.view.mode == Mode::kGpu) {
    const bool has_gpu = raw.with_gpu || raw.with_launches;
    return Usage(has_gpu ? "Leave --mode gpu out: what a GPU did has a table of its own, and "
                           "'report FILE --gpu' shows that alone."
                         : "It is one of wall, cpu, gil. What a GPU did is told by 'run --gpu'.",
                 "samples of threads do not tell what a GPU did: --mode gpu");
  }
  auto outputs = UnderstandOutputs(raw);
  if (!outputs) return std::unexpected(outputs.error());
  options.outputs = *std::move(outputs);
  options.force = raw.force;
  options.quiet = raw.quiet;
  if (auto pairs = CheckPairs(raw, options.outputs); !pairs) {
    return std::unexpected(pairs.error());
  }
  return options;
}

}  // namespace pystrobe::cli
