// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, and the ranges of a program, from one recording's ids to another's. [one thread
// at a time]
#pragma once

#include "profiler/model/gpu_record.h"
#include "profiler/model/range_record.h"
#include "profiler/model/tables.h"

namespace pystrobe {

/// `record`, whose ids are of `from`, in those of `to`, which gets what it lacks of what the record
/// uses, and nothing else. A stack of the same frames is the same one there.
GpuRecord TranslateGpu(GpuRecord record, const Tables& from, Tables& to);

/// The same of the ranges of a program.
RangeRecord TranslateRanges(RangeRecord record, const Tables& from, Tables& to);

}  // namespace pystrobe
