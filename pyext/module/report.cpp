// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "profiler/analyze/profile.h"
#include "profiler/store/strobe.h"
#include "pyext/module/core.h"
#include "pyext/module/errors.h"
#include "pyext/module/gpu_report.h"
#include "pyext/module/range_report.h"
#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using py::literals::operator""_a;

// What is computed without the GIL. The profile points into the recording.
struct Report {
  Profile profile;
  std::vector<FunctionRow> functions;
  std::optional<SplitTimes> split;  ///< with Metadata::native
};

Result<Report> AddUp(const store::StrobeFile& file, Mode mode, const FoldOptions& options) {
  Result<Profile> profile = Fold(file, options);
  if (!profile) return std::unexpected(profile.error());
  std::vector<FunctionRow> functions = FunctionTable(*profile, mode);
  std::optional<SplitTimes> split;
  if (file.metadata().native) split = SplitCpuTime(*profile);
  return Report{std::move(*profile), std::move(functions), std::move(split)};
}

Result<int64_t> ToNanoseconds(double seconds, std::string_view what) {
  constexpr double kLargest = 9e9;  // 285 years, which fits the type
  if (!(seconds >= 0 && seconds <= kLargest)) {
    return Fail(ErrorCode::kInvalidArgument, "{} must be seconds from the start, not {}", what,
                seconds);
  }
  return std::llround(seconds * 1e9);
}

py::dict MetadataDict(const Metadata& metadata) {
  return py::dict(
      "pid"_a = metadata.pid, "command"_a = ToPaths(metadata.command),
      "executable"_a = ToPath(metadata.executable),
      "python_version"_a = ToStr(metadata.python_version), "host"_a = ToStr(metadata.host),
      "pystrobe_version"_a = ToStr(metadata.pystrobe_version),
      "pause_mode"_a = ToStr(metadata.pause_mode), "start_unix_ns"_a = metadata.start_unix_ns,
      "wanted_rate_hz"_a = metadata.wanted_rate_hz, "max_overhead"_a = metadata.max_overhead,
      "cpu_count"_a = metadata.cpu_count, "native"_a = metadata.native,
      "max_depth"_a = metadata.max_depth, "clock"_a = ToStr(ClockName(metadata.clock)),
      "gpu_failure"_a = ToStr(metadata.gpu_failure));
}

py::dict QualityDict(const Quality& quality) {
  return py::dict(
      "deadlines"_a = quality.deadlines, "stacks"_a = quality.samples, "taken"_a = quality.taken,
      "proved"_a = quality.proved, "marked"_a = quality.marked, "incomplete"_a = quality.incomplete,
      "late"_a = quality.late, "lost"_a = quality.lost, "retries"_a = quality.retries,
      "unresolved"_a = quality.unresolved, "reused_code"_a = quality.reused_code,
      "duration_ns"_a = quality.duration_ns, "held_ns"_a = quality.held_ns,
      "run_delay_ns"_a = quality.run_delay_ns, "own_cpu_ns"_a = quality.own_cpu_ns,
      "achieved_rate_hz"_a = quality.achieved_rate_hz, "final_rate_hz"_a = quality.final_rate_hz,
      "complete"_a = quality.complete, "cpu_source"_a = ToStr(quality.cpu_source),
      "pause_mode"_a = ToStr(quality.pause_mode), "thread_ns"_a = quality.thread_ns,
      "unseen_ns"_a = quality.unseen_ns, "limited_ns"_a = quality.limited_ns,
      "cpu_ns"_a = quality.cpu_ns, "unseen_cpu_ns"_a = quality.unseen_cpu_ns,
      "native_cut"_a = quality.native_cut, "native_unfit"_a = quality.native_unfit,
      "left_out"_a = quality.left_out, "held_count"_a = quality.held_each.count(),
      "held_median_ns"_a = quality.held_each.Median(),
      "held_p99_ns"_a = quality.held_each.Quantile(0.99), "uncounted"_a = quality.uncounted,
      "timeline_failure"_a = ToStr(quality.timeline_failure),
      "timeline_end_ns"_a = quality.timeline_end_ns);
}

py::list ThreadList(const Profile& profile) {
  const Tables& tables = profile.tables();
  py::list list;
  for (const ThreadProfile& entry : profile.threads) {
    const Thread& thread = tables.thread(entry.thread);
    list.append(py::dict("tid"_a = thread.tid, "name"_a = ToStr(tables.text(thread.name)),
                         "interpreter"_a = thread.interpreter, "total"_a = ToDict(entry.total)));
  }
  return list;
}

py::dict SplitDict(const CpuSplit& split) {
  return py::dict("python_ns"_a = split.python_ns, "native_ns"_a = split.native_ns,
                  "kernel_ns"_a = split.kernel_ns);
}

// By line number; nothing for a function of machine code.
py::dict LineSplits(const SplitTimes& times, FunctionId id) {
  py::dict lines;
  const auto found = std::ranges::lower_bound(times.functions, id, {}, &FunctionSplit::function);
  if (found == times.functions.end() || found->function != id) return lines;
  for (const FunctionSplit::Line& line : found->lines) {
    lines[py::int_(line.line)] = SplitDict(line.cpu);
  }
  return lines;
}

py::list FunctionList(const Report& report) {
  const Tables& tables = report.profile.tables();
  py::list list;
  for (const FunctionRow& row : report.functions) {
    const Function& function = tables.function(row.function);
    list.append(py::dict(
        "name"_a = ToStr(tables.text(function.name)), "file"_a = ToStr(tables.text(function.file)),
        "first_line"_a = function.first_line, "hottest_line"_a = row.hottest_line,
        "native"_a = function.is_native, "self"_a = ToDict(row.self), "total"_a = ToDict(row.total),
        "lines"_a = report.split ? LineSplits(*report.split, row.function) : py::dict()));
  }
  return list;
}

FoldOptions ToFoldOptions(const ReportOptions& options) {
  FoldOptions fold;
  fold.thread = options.thread;
  fold.since_ns = ValueOrRaise(ToNanoseconds(options.since, "since"));
  if (options.until) fold.until_ns = ValueOrRaise(ToNanoseconds(*options.until, "until"));
  fold.include_idle = options.include_idle;
  return fold;
}

}  // namespace

py::dict ToDict(const Weights& weights) {
  return py::dict("samples"_a = weights.samples, "cpu_samples"_a = weights.cpu_samples,
                  "gil_samples"_a = weights.gil_samples, "wall_ns"_a = weights.wall_ns,
                  "cpu_ns"_a = weights.cpu_ns, "gil_ns"_a = weights.gil_ns,
                  "gpu_ns"_a = weights.gpu_ns, "gpu_count"_a = weights.gpu_count);
}

std::optional<Mode> ToMode(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const std::optional<Mode> mode = ModeByName(*name);
  if (!mode) {
    Raise({ErrorCode::kInvalidArgument, fmt::format("no such mode: '{}'", *name),
           "one of wall, cpu, gil, gpu"});
  }
  return mode;
}

Mode ModeFor(const Recording& recording, const std::optional<std::string>& name) {
  return ValueOrRaise(ChooseMode(recording.file(), ToMode(name)));
}

py::dict ReadReport(const std::string& path, const ReportOptions& options) {
  ToMode(options.mode);
  ToFoldOptions(options);
  auto recording = [&] {
    const py::gil_scoped_release released;
    return Recording::Open(path);
  }();
  return MakeReport(*ValueOrRaise(std::move(recording)), options);
}

py::dict MakeReport(const Recording& recording, const ReportOptions& options) {
  FoldOptions fold = ToFoldOptions(options);
  const Mode mode = ValueOrRaise(ChooseMode(recording.file(), ToMode(options.mode), fold.IsPart()));
  fold.work = WorkOf(mode);
  Result<Report> result = [&] {
    const py::gil_scoped_release released;
    return AddUp(recording.file(), mode, fold);
  }();
  const Report report = ValueOrRaise(std::move(result));
  const store::StrobeFile& file = recording.file();
  const py::object split = report.split ? py::object(SplitDict(report.split->total)) : py::none();
  return py::dict("metadata"_a = MetadataDict(file.metadata()), "cpu_split"_a = split,
                  "quality"_a = QualityDict(file.quality()), "cut_off"_a = ToStr(file.cut_off()),
                  "mode"_a = ToStr(ModeName(mode)), "total"_a = ToDict(report.profile.total),
                  "unseen"_a = ToDict(report.profile.unseen),
                  "idle_threads_hidden"_a = report.profile.idle_hidden.size(),
                  "threads"_a = ThreadList(report.profile), "functions"_a = FunctionList(report),
                  "gpu"_a = GpuReportDict(file), "ranges"_a = RangeList(file));
}

}  // namespace pystrobe::pyext
