// SPDX-License-Identifier: Apache-2.0
//
// What used the CPU time, line by line: Python, C functions or the kernel. [any thread]
#pragma once

#include <string>

#include "profiler/analyze/profile.h"
#include "profiler/print/table.h"

namespace pystrobe::print {

/// The lines of Python functions that used most CPU time, themselves and in the C functions that
/// they called. Empty where the recording has no C functions, or there was no CPU time.
std::string FormatSplit(const Profile& profile, const TableOptions& options);

}  // namespace pystrobe::print
