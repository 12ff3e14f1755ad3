// SPDX-License-Identifier: Apache-2.0
//
// A recording as text, as a file of any format, as stacks.
#include <pybind11/stl.h>

#include "profiler/print/range_table.h"
#include "profiler/print/report.h"
#include "profiler/print/terminal.h"
#include "profiler/write/fd_output.h"
#include "pyext/module/core.h"
#include "pyext/module/errors.h"
#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using py::literals::operator""_a;

Result<void> WriteTo(write::Output& output, const Recording& recording, write::Format format,
                     Mode mode, bool include_idle, write::Unit unit) {
  if (format == write::Format::kStrobe) {
    const auto fd = recording.fd();
    return fd ? write::CopyFile(*fd, output) : std::unexpected(fd.error());
  }
  const FoldOptions asked{.include_idle = include_idle, .work = WorkOf(mode)};
  const auto profile =
      Fold(recording.file(), write::FoldOptionsFor(format, recording.file(), asked));
  if (!profile) return std::unexpected(profile.error());
  write::WriteOptions options;
  options.mode = mode;
  options.idle = include_idle;
  options.unit = unit;
  return write::Write(format, *profile, options, output);
}

py::tuple ToTuple(const Tables& tables, StackId stack) {
  py::list frames;
  for (const FrameId id : tables.FramesOf(stack)) {
    const Frame& frame = tables.frame(id);
    const Function& function = tables.function(frame.function);
    frames.append(py::dict("function"_a = ToStr(tables.text(function.name)),
                           "file"_a = ToStr(tables.text(function.file)), "line"_a = frame.line,
                           "native"_a = function.is_native));
  }
  return py::tuple(frames);
}

}  // namespace

py::str MakeTable(const Recording& recording, const TableOptions& options) {
  const store::StrobeFile& file = recording.file();
  const print::Terminal terminal =
      options.fd ? print::DescribeTerminal(*options.fd, kProcessEnvironment) : print::Terminal{};
  const auto table_in = [&](Mode mode) {
    return print::TableOptions{mode, options.top, terminal, options.directory,
                               print::Dialect::kPython};
  };
  const std::optional<Mode> asked = ToMode(options.mode);
  if (print::HasRangesAlone(file, asked)) {
    return ToStr(print::FormatRangeReport(file, table_in(Mode::kGpu),
                                          {.width = terminal.width, .cut_off = file.cut_off()}));
  }
  const Mode mode = ModeFor(recording, options.mode);
  Result<std::string> text = [&]() -> Result<std::string> {
    const py::gil_scoped_release released;
    const auto profile = Fold(
        file,
        {.thread = options.thread, .include_idle = options.include_idle, .work = WorkOf(mode)});
    if (!profile) return std::unexpected(profile.error());
    return print::FormatReport(*profile,
                               {.table = table_in(mode),
                                .of_a_part = options.thread.has_value(),
                                .thread = options.thread,
                                .cut_off = file.cut_off(),
                                .how_to_show_gpu = options.mode ? "" : "print(mode=\"gpu\")"});
  }();
  return ToStr(ValueOrRaise(std::move(text)));
}

void Save(const Recording& recording, int fd, const std::string& name, const std::string& format,
          const std::optional<std::string>& mode, bool include_idle, const std::string& unit) {
  const Mode of = ModeFor(recording, mode);
  const auto wanted = write::FormatByName(format);
  if (!wanted) {
    Raise({ErrorCode::kInvalidArgument, fmt::format("no such format: '{}'", format),
           "one of strobe, html, speedscope, pprof, collapsed, json"});
  }
  const auto in = write::UnitByName(unit);
  if (!in) {
    Raise({ErrorCode::kInvalidArgument, fmt::format("no such unit: '{}'", unit),
           "one of samples, us, ns"});
  }
  const Result<void> saved = [&]() -> Result<void> {
    const py::gil_scoped_release released;
    write::FdOutput output(fd);
    auto written = WriteTo(output, recording, *wanted, of, include_idle, *in);
    return written ? output.Flush() : written;
  }();
  if (!saved) Raise(Wrap(saved.error(), "{}", name).error());
}

py::list ListStacks(const Recording& recording, const std::optional<std::string>& mode,
                    bool include_idle) {
  const Work work = WorkOf(ModeFor(recording, mode));
  Result<Profile> folded = [&] {
    const py::gil_scoped_release released;
    return Fold(recording.file(), {.include_idle = include_idle, .work = work});
  }();
  const Profile profile = ValueOrRaise(std::move(folded));
  const Tables& tables = profile.tables();
  py::list list;
  for (const ThreadProfile& thread : profile.threads) {
    const Thread& of = tables.thread(thread.thread);
    for (const StackWeight& entry : thread.stacks) {
      list.append(py::dict("tid"_a = of.tid, "thread"_a = ToStr(tables.text(of.name)),
                           "frames"_a = ToTuple(tables, entry.stack),
                           "self"_a = ToDict(entry.self)));
    }
  }
  return list;
}

std::optional<std::string> FormatOf(const std::string& file_name) {
  const auto format = write::FormatByFileName(file_name);
  if (!format) return std::nullopt;
  return std::string(write::FormatName(*format));
}

std::pair<py::bytes, py::bytes> SplitSuffix(const std::string& path) {
  const auto [stem, suffix] = write::SplitSuffix(path);
  return {py::bytes(stem), py::bytes(suffix)};
}

}  // namespace pystrobe::pyext
