// SPDX-License-Identifier: Apache-2.0
//
// What GPUs did, by kernel. [any thread]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analyze/kernel_labels.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/recording.h"

namespace pystrobe {

/// Between which times a median is: sums keep times by powers of two, and no more can be said.
struct GpuMedian {
  uint64_t least_ns = 0, most_ns = 0;

  friend bool operator==(const GpuMedian&, const GpuMedian&) = default;
};

/// All work by one name, wherever it was launched. Kernels of several shapes are one row, unless
/// more or fewer of their blocks fit on the device.
struct GpuRow {
  GpuWorkKind kind = GpuWorkKind::kKernel;
  StringId name = kEmptyString, short_name = kEmptyString;
  uint64_t count = 0;
  uint64_t untimed = 0;  ///< done too, but the device told no times; as GpuSum has it
  uint64_t total_ns = 0;
  uint64_t min_ns = 0, max_ns = 0;  ///< 0 where the count is
  uint64_t bytes = 0;               ///< of copies and sets
  std::optional<GpuMedian> median;  ///< where the count is not 0
  /// Of what of it took most time, as are these: its threads in a block, whether it can fill the
  /// device, what may be worth a change.
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> grid{};
  std::optional<GpuOccupancy> occupancy;
  StringId advice = kEmptyString;
  /// The line of Python that launched what took most time, or most of it where nobody asked for
  /// time, over all of it; none: in no Python.
  std::optional<FrameId> line;

  /// Of those with times; 0 where there are none.
  double mean_ns() const;
  /// Of copies and sets, in 1e9 bytes a second; 0 where it is not known.
  double gigabytes_per_second() const;
};

/// All work of one kind together.
struct GpuKindSum {
  uint64_t count = 0;  ///< those without times too
  uint64_t total_ns = 0;
};

struct GpuTable {
  /// As GpuQuality has it: then all is untimed, and by number instead of time.
  bool launches_only = false;
  std::vector<GpuRow> rows;           ///< by descending time, then number, then name
  std::array<GpuKindSum, 3> kinds{};  ///< by GpuWorkKind
  uint64_t count = 0;                 ///< of all, those without times too
  uint64_t total_ns = 0;              ///< of all
  KernelLabels labels;                ///< no longer than the recording's tables

  std::string_view LabelOf(const GpuRow& row) const { return labels.Of(row.name, row.short_name); }
};

/// Of the recording's GpuRecord, which it has. `stream`: only of streams with this in their names.
/// Ids are of the recording's tables.
GpuTable MakeGpuTable(const RecordingSource& recording,
                      const std::optional<std::string>& stream = {});

}  // namespace pystrobe
