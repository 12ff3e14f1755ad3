// SPDX-License-Identifier: Apache-2.0
//
// What GPUs did, by kernel, for a terminal. [any thread]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profiler/model/recording.h"
#include "profiler/print/quality.h"
#include "profiler/print/table.h"

namespace pystrobe::print {

/// The kernels, copies and sets of a recording that has work of a GPU, by time, what is known of
/// each and the line of Python that launched most of it. `stream`: only of streams with this in
/// their names. TableOptions::top is that of rows; its mode is not looked at.
std::string FormatGpuTable(const RecordingSource& recording, const TableOptions& options,
                           const std::optional<std::string>& stream = {});

/// How far a GPU's figures can be trusted, as FormatQuality() tells of samples. The recording has
/// work of a GPU.
std::string FormatGpuQuality(const RecordingSource& recording, const QualityOptions& options);

/// One line for a table of something else: that there is work of a GPU, and how it is shown. Empty
/// where there is none. `how`: "pystrobe report FILE --gpu".
std::string FormatGpuNote(const RecordingSource& recording, std::string_view how, int width);

}  // namespace pystrobe::print
