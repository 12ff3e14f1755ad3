// SPDX-License-Identifier: Apache-2.0
//
// What timelines show of the ranges that a program named: each time that one was open, on the
// thread that began it, and from its first work to its last one on the streams of GPUs.
// [any thread, const]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/range_record.h"
#include "profiler/write/gpu_timeline.h"

namespace pystrobe::write {

/// Memory grows by some 30 bytes a span, and some 100 a work of a GPU. The profile outlives it.
class RangeTimeline {
 public:
  /// What is within each other in a row, or behind each other. What overlaps across an end, as
  /// ranges do that are begun and ended by hand, is in rows of its own.
  struct Row {
    bool is_stream = false;
    uint32_t tid = 0;                 ///< of a thread
    uint32_t device = 0, stream = 0;  ///< of a stream
    uint32_t lane = 0;  ///< 0: that of the thread or stream itself; else one of ranges alone
    size_t end = 0;     ///< of it in the slices
  };

  /// Cut to the part of the profile. Times since the start of the recording.
  struct Slice {
    int64_t begin_ns = 0, end_ns = 0;
    uint32_t range = 0;  ///< index into RangeRecord::ranges
    uint32_t lane = 0;
    uint32_t place = 0;  ///< a thread's id, or a device
    uint32_t stream = 0;
  };

  /// `with_work`: slices may be on the row of a stream itself, with the works there, where they
  /// overlap none of these across an end. On the row of a thread itself they are where it has no
  /// calls, which begin ranges and end before these do.
  RangeTimeline(const Profile& profile, const GpuTimeline& gpu, bool with_work);

  bool empty() const { return rows_.empty(); }
  /// Threads first, by id; then streams, by device.
  const std::vector<Row>& rows() const { return rows_; }

  /// Row by row, in order of time; what has another within it comes before that.
  void ForEachSlice(FunctionRef<void(const Slice&, size_t row)> visit) const;

  /// Times that a range was open, whose work is not there: there were too many to look at.
  uint64_t left_out() const { return left_out_; }

 private:
  void AddThreads(const Profile& profile);
  void AddStreams(const Profile& profile, const GpuTimeline& gpu, bool with_work);
  void AddRows(bool is_stream, size_t first);

  const RangeRecord* record_;
  std::vector<Slice> slices_;
  std::vector<Row> rows_;
  uint64_t left_out_ = 0;
};

/// Whether there is one in it.
inline bool HasRangeTimeline(const RecordingSource& recording) {
  return recording.ranges() != nullptr && !recording.ranges()->spans.empty();
}

/// Of a row of ranges alone: "MainThread ranges", "stream 7 ranges (2)" of the second lane.
std::string RangeRowName(const RangeTimeline::Row& row, const Tables& tables);

}  // namespace pystrobe::write
