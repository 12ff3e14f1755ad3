// SPDX-License-Identifier: Apache-2.0
//
// Which program `run` starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "profiler/base/environment.h"
#include "profiler/base/error.h"

namespace pystrobe::cli {

/// The argument vector to start. A script or module gets an interpreter in front: --python, else
/// $PYSTROBE_PYTHON, else bin/python of $VIRTUAL_ENV, else, where the program needs the package,
/// that of the virtual environment of `executable`, which is ours, else python3 of the PATH. Fails
/// with kNotFound when the script is not there.
Result<std::vector<std::string>> CommandToRun(const RunOptions& options, Environment environment,
                                              std::string_view executable);

/// The interpreter that most likely has the package: as above, without --python.
std::string PythonWithPackage(Environment environment, std::string_view executable);

/// The same command, sampled from inside: by way of a module of the Python package.
std::vector<std::string> CommandInside(const std::vector<std::string>& command);
/// What to do when the program, of this interpreter, has written no recording.
std::string CureInside(const RunOptions& options, const std::string& python);
/// The same where a signal has ended the program.
std::string CureOfKilled(const RunOptions& options);
/// What $PYSTROBE_LAUNCH tells that module; the recording goes to `descriptor`, those of children
/// made by fork beside `children` (forked.h), if any.
std::string SettingsInside(const RunOptions& run, int descriptor,
                           const std::optional<std::string>& children);

}  // namespace pystrobe::cli
