// SPDX-License-Identifier: Apache-2.0
//
// Talking to the user. Reports go to stdout, everything else to stderr. A stream that nobody reads
// any more is no error. [main thread]
#pragma once

#include <string>
#include <string_view>

#include "profiler/base/error.h"

namespace pystrobe::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

/// kExitUsage for kInvalidArgument, else kExitFailure.
int ExitCodeFor(const Error& error);

/// "pystrobe: message" and the hint, each line indented, ending with a newline. No line is wider
/// than `width` cells as long as no word is.
std::string ErrorText(const Error& error, int width);
/// Prints ErrorText to stderr: as wide as the terminal, in a file each line as long as it is.
void PrintError(const Error& error);
/// Prints "pystrobe: line" to stderr.
void PrintNote(std::string_view line);

/// False when nothing can be written to it, as to one that the caller had closed.
bool IsWritable(int fd);

/// Writes `text` to stdout. True also when the reader went away; else prints the error.
bool PrintToStdout(std::string_view text);

}  // namespace pystrobe::cli
