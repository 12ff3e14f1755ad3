// SPDX-License-Identifier: Apache-2.0
//
// What a session found, in the words of a recording.
#pragma once

#include "gpu/cupti_session.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/tables.h"

namespace pystrobe::launch {

/// Function::name of where work was launched that no launch was seen of.
inline constexpr std::string_view kLaunchNotSeen = "<launch not seen>";
/// Of what a CUDA graph did: below it stands where the graph was launched, above it, where that was
/// seen, what was called when the work was captured.
inline constexpr std::string_view kGraph = "<CUDA graph>";

/// All but the duration, of a session that has stopped. `tables` has the paths of its launches, as
/// stacks, and gets the names. [any thread]
void AddRecords(const gpu::CuptiSession& session, Tables& tables, GpuRecord& record);
/// The same of a session that goes on, without a timeline. `paths` fills `tables` with the paths,
/// while nothing is added. [any thread]
void AddRecordsSoFar(const gpu::CuptiSession& session, FunctionRef<void()> paths, Tables& tables,
                     GpuRecord& record);

/// Why the record may lack something. After AddRecords.
void AddRemark(std::string_view remark, Tables& tables, GpuRecord& record);

}  // namespace pystrobe::launch
