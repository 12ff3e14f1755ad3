// SPDX-License-Identifier: Apache-2.0
//
// When GPUs had nothing to do, as text. [any thread]
#pragma once

#include <string>

#include "profiler/model/recording.h"
#include "profiler/print/table.h"

namespace pystrobe::print {

/// How much of the time a GPU had nothing to do, why and where in the program, and where threads
/// waited for it. Empty where the recording does not tell it.
std::string FormatGpuIdle(const RecordingSource& recording, const TableOptions& options);

}  // namespace pystrobe::print
