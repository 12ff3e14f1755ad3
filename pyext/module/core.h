// SPDX-License-Identifier: Apache-2.0
//
// What pystrobe._core offers to the Python package, which turns the dictionaries into dataclasses:
// their keys are those classes' fields. The work is done without the GIL. [GIL held on entry]
#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "profiler/analyze/profile.h"
#include "pyext/module/recording.h"

namespace pystrobe::pyext {

/// A remote::Dump. `pause` is a name of remote::PauseMode.
pybind11::dict TakeDump(pid_t pid, bool locals, const std::string& pause, bool native);

/// Which part of a recording counts, as the Python caller says it.
struct ReportOptions {
  std::optional<std::string> mode;  ///< a name of a Mode; none: see ChooseMode
  std::optional<std::string> thread;
  double since = 0;  ///< seconds from the start
  std::optional<double> until;
  bool include_idle = false;
};

pybind11::dict ToDict(const Weights& weights);

/// The mode of that name, or the exception.
std::optional<Mode> ToMode(const std::optional<std::string>& name);
/// The mode to show the recording in, or the exception.
Mode ModeFor(const Recording& recording, const std::optional<std::string>& name);

/// What a recording holds: metadata, quality, and the times of its threads and functions.
pybind11::dict MakeReport(const Recording& recording, const ReportOptions& options);
/// The same of a file, opened if the options are right.
pybind11::dict ReadReport(const std::string& path, const ReportOptions& options);

/// The functions as a table, with the quality line.
struct TableOptions {
  std::optional<std::string> mode;
  std::optional<uint32_t> top;
  std::optional<int> fd;  ///< where it will be shown, if that may be a terminal
  std::string directory;
  bool include_idle = false;
  std::optional<std::string> thread;  ///< as FoldOptions::thread
};
pybind11::str MakeTable(const Recording& recording, const TableOptions& options);

/// Writes the recording to a descriptor. `name`: of the file, for messages; `format`: a name of
/// write::Format; `unit`: of collapsed stacks, "samples", "us" or "ns".
void Save(const Recording& recording, int fd, const std::string& name, const std::string& format,
          const std::optional<std::string>& mode, bool include_idle, const std::string& unit);

/// A name of write::Format for a file name, or None.
std::optional<std::string> FormatOf(const std::string& file_name);
/// write::SplitSuffix, as bytes.
std::pair<pybind11::bytes, pybind11::bytes> SplitSuffix(const std::string& path);

/// Each distinct stack of each thread, or of each stream of a GPU, root first, with its weights.
pybind11::list ListStacks(const Recording& recording, const std::optional<std::string>& mode,
                          bool include_idle);

}  // namespace pystrobe::pyext
