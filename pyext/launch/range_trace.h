// SPDX-License-Identifier: Apache-2.0
//
// The ranges that this process and its libraries name (NVTX), as a part of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/nvtx_ranges.h"
#include "gpu/range_projection.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/model/range_record.h"
#include "profiler/model/tables.h"

namespace pystrobe::launch {

/// One at a time in a process. In a child of fork() there is nothing to be had of it. [any thread,
/// one at a time]
class RangeTrace {
 public:
  /// `max_spans`: of the last so many it is kept when they were. Fails where one runs already.
  static Result<std::unique_ptr<RangeTrace>> Start(size_t max_spans);
  /// Stops, and drops what was found.
  ~RangeTrace() { ranges_.DropRecording(recording_); }
  RangeTrace(const RangeTrace&) = delete;
  RangeTrace& operator=(const RangeTrace&) = delete;

  /// Of this process; of no time but of one while a RangeTrace runs.
  static Result<const gpu::RangeInstances*> Instances();

  /// Starts over.
  void Restart();
  /// Ends; what is open counts until `end`. Once.
  gpu::FoundRanges Stop(Nanoseconds end) { return ranges_.EndRecording(recording_, end); }
  Nanoseconds begin() const { return begin_; }

  /// What was found, and what devices did for it, in the words of a recording: `tables` gets the
  /// names.
  static RangeRecord ToRecord(const gpu::FoundRanges& found,
                              const std::vector<gpu::RangeStreamSum>& sums, Tables& tables);

 private:
  RangeTrace(gpu::NvtxRanges& ranges, uint64_t recording)
      : ranges_(ranges), recording_(recording), begin_(MonotonicNow()) {}

  gpu::NvtxRanges& ranges_;
  const uint64_t recording_;
  Nanoseconds begin_;
};

}  // namespace pystrobe::launch
