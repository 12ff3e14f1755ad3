// SPDX-License-Identifier: Apache-2.0
//
// Private to analyze: the lines of Python that a GPU's work comes from. [any thread]
#pragma once

#include <optional>
#include <vector>

#include "profiler/model/tables.h"

namespace pystrobe::analyze {

/// Whether it is of a function of Python, a region being none.
bool IsPythonLine(FrameId frame, const Tables& tables);

/// By StackId, its innermost frame of Python.
std::vector<std::optional<FrameId>> PythonLinesOf(const Tables& tables);

}  // namespace pystrobe::analyze
