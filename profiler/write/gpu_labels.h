// SPDX-License-Identifier: Apache-2.0
//
// The words that every format uses for what a GPU did. Not yet escaped for any format.
// [any thread]
#pragma once

#include <string>
#include <string_view>

#include "profiler/analyze/gpu_table.h"
#include "profiler/model/recording.h"
#include "profiler/write/labels.h"

namespace pystrobe::write {

/// "kernel", "copy", "set".
std::string_view GpuKindName(GpuWorkKind kind);

/// A word for each, for programs that read it.
std::string_view GpuIdleCauseName(GpuIdleCause cause);
/// What it means, for people.
std::string_view GpuIdleCauseText(GpuIdleCause cause);

/// "1.23 s in 20,500 kernels, 3 ms in 12 copies"; where nobody asked for times, "20,500 kernels, 12
/// copies launched"; "nothing" where there is none.
std::string GpuSummary(const GpuTable& table);

/// kGood: all that was launched was recorded, with what launched it; kFair: up to 1 % is missing or
/// is not told apart, or there is nothing; kDoubtful: more than that.
Verdict JudgeGpu(const GpuRecord& record);

/// How far the figures of a GPU can be trusted, as QualityLine() tells of samples: the verdict, how
/// much of what was launched was recorded, what is missing, own CPU, what told.
std::string GpuQualityLine(const GpuRecord& record, const Tables& tables);

/// QualityLine() of samples where there are any, and behind it what is told of a GPU.
std::string WholeQualityLine(const RecordingSource& recording);

/// The worse of Judge() and JudgeGpu(), of what there is.
Verdict JudgeWhole(const RecordingSource& recording);

}  // namespace pystrobe::write
