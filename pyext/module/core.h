// SPDX-License-Identifier: Apache-2.0
//
// What pystrobe._core offers to the Python package, which turns the dictionaries into dataclasses:
// their keys are those classes' fields. The work is done without the GIL. [GIL held on entry]
#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace pystrobe::pyext {

/// A remote::Dump. `pause` is a name of remote::PauseMode.
pybind11::dict TakeDump(pid_t pid, bool locals, const std::string& pause);

/// Which part of a recording counts, as the Python caller says it.
struct ReportOptions {
  std::string mode;  ///< "wall", "cpu" or "gil"
  std::optional<std::string> thread;
  double since = 0;  ///< seconds from the start
  std::optional<double> until;
  bool include_idle = false;
};

/// What a .strobe file holds: metadata, quality, and the times of its threads and functions.
pybind11::dict ReadReport(const std::string& path, const ReportOptions& options);

}  // namespace pystrobe::pyext
