// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, for a terminal. [any thread]
#pragma once

#include <optional>
#include <string>

#include "profiler/analyze/profile.h"
#include "profiler/model/recording.h"
#include "profiler/print/quality.h"
#include "profiler/print/table.h"

namespace pystrobe::print {

/// The ranges of the recording, as a tree: how often each began, its time on the host, what it took
/// of GPUs, and a legend. Empty where there are none. `stream`: only work of streams with this in
/// their names. TableOptions::top is that of rows; its mode is not looked at.
std::string FormatRangeTable(const RecordingSource& recording, const TableOptions& options,
                             const std::optional<std::string>& stream = {});

/// Whether `asked` means what a GPU did, of which the recording has ranges alone: then there is
/// nothing to fold, and FormatRangeReport() shows it.
bool HasRangesAlone(const RecordingSource& recording, std::optional<Mode> asked);

/// The table of ranges, and the quality of the recording.
std::string FormatRangeReport(const RecordingSource& recording, const TableOptions& options,
                              const QualityOptions& quality);

}  // namespace pystrobe::print
