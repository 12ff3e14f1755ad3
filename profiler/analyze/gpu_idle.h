// SPDX-License-Identifier: Apache-2.0
//
// When GPUs had nothing to do, by what the program did meanwhile. [any thread]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/model/gpu_record.h"
#include "profiler/model/recording.h"

namespace pystrobe {

/// All idle time of one reason, in one place of the program.
struct GpuIdleRow {
  GpuIdleCause cause = GpuIdleCause::kUnknown;
  /// Of kHost, the innermost call that the launch before and the one after have in common, at both
  /// of its lines; of kWait, the line that waited; of the rest, the line that launched next. In
  /// Python, a region being none; none: not in Python, or not known.
  std::optional<FrameId> from, to;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
};

/// Of threads for a GPU, on one line.
struct GpuWaitRow {
  std::optional<FrameId> line;  ///< none: not in Python
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
};

struct GpuIdleTable {
  uint64_t busy_ns = 0;  ///< of all devices, each between its first work and its last
  uint64_t idle_ns = 0;
  std::array<uint64_t, kGpuIdleCauses> by_cause{};
  std::vector<GpuIdleRow> rows;   ///< by descending time
  std::vector<GpuWaitRow> waits;  ///< by descending time
};

/// Of the recording's GpuRecord, which it has. Ids are of the recording's tables.
GpuIdleTable MakeGpuIdleTable(const RecordingSource& recording);

}  // namespace pystrobe
