// SPDX-License-Identifier: Apache-2.0
//
// The words that every format uses for the same thing. Not yet escaped for any format.
// [any thread]
#pragma once

#include <string>
#include <string_view>

#include "profiler/model/recording.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Stands for the stack of a thread that was seen outside any Python function.
inline constexpr std::string_view kNoPythonFrames = "[no Python frames]";

/// "MainThread [4242]", "thread [4242]" without a name; a sub-interpreter is named too. Unique in a
/// recording as far as thread ids are.
std::string ThreadLabel(const Thread& thread, const Tables& tables);

/// WriteOptions::title, else the command, else the executable, else "pystrobe".
std::string Title(const Metadata& metadata, const WriteOptions& options);

/// The function's name; "<unknown>" instead of an empty one.
std::string_view FunctionName(const Function& function, const Tables& tables);

/// How far the recording can be trusted, without a full stop: samples, achieved and wanted rate,
/// proved or marked, late, lost, time the target was held, own CPU; and whatever was unusual (rate
/// lowered, many lost, incomplete stacks, cut off). Every report shows this one sentence.
std::string QualityLine(const Metadata& metadata, const Quality& quality);

/// One line telling what was recorded: tool, interpreter, process, host, way of pausing.
std::string OriginLine(const Metadata& metadata);

}  // namespace pystrobe::write
