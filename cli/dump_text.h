// SPDX-License-Identifier: Apache-2.0
//
// A dump as text and as JSON. [any thread]
#pragma once

#include <string>

#include "profiler/print/terminal.h"
#include "sampler/remote/dump.h"

namespace pystrobe::cli {

/// Every thread with its frames, most recent call first: the top line is what it is doing now.
/// Frames that repeat at the same line (deep recursion) are folded. On a terminal long names and
/// paths are cut at their start; elsewhere nothing is.
std::string DumpText(const remote::Dump& dump, const print::Terminal& terminal);

/// {"pid", "python", "free_threaded", "command": [...], "held_ns", "threads": [{"tid", "name",
/// "interpreter", "state", "holds_gil", "proved", "complete", "native_whole", "frames":
/// [{"function", "file", "line", "native", "locals": {name: {"value", "argument"}}}]}]}; frames
/// most recent call first, "locals" only if `locals`.
std::string DumpJson(const remote::Dump& dump, bool locals);

}  // namespace pystrobe::cli
