// SPDX-License-Identifier: Apache-2.0
//
// What threads did while a GPU had nothing to do because they launched nothing for it. [any thread]
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/model/recording.h"

namespace pystrobe {

/// All that threads were seen at on one line. Times in nanoseconds.
struct MeanwhileRow {
  std::optional<FrameId> line;  ///< the innermost one in Python; none: in no Python
  uint64_t wall_ns = 0;         ///< 0 where threads were looked at as they used CPU time
  uint64_t cpu_ns = 0;
};

/// Of the times of GpuIdleCause::kHost that a recording has one by one, and of the threads whose
/// launches ended them.
struct GpuMeanwhile {
  uint64_t gaps_ns = 0;  ///< in which at least one GPU had nothing to do because of the thread
  uint64_t wall_ns = 0;  ///< of these, that samples tell of
  uint64_t cpu_ns = 0;   ///< that the threads used meanwhile
  std::vector<MeanwhileRow> rows;  ///< by descending wall time, then CPU time
};

/// Of a recording with a GpuRecord; reads its samples. Without any, as of traced calls, there are
/// no rows. Ids are of the recording's tables.
Result<GpuMeanwhile> MakeGpuMeanwhile(const RecordingSource& recording);

}  // namespace pystrobe
