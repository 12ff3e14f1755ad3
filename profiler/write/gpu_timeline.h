// SPDX-License-Identifier: Apache-2.0
//
// What timelines show of a GPU: the works of a recording by themselves, as rows that nothing
// overlaps in, and the launches that they came from. [any thread, const]
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/gpu_record.h"
#include "profiler/write/timeline_part.h"

namespace pystrobe::write {

/// Memory grows by some 20 bytes a span. The profile outlives it.
class GpuTimeline {
 public:
  /// Work of a stream follows each other, as a rule. What overlaps all the same, as a kernel may
  /// that was let begin before the end of the one before it, or the branches of a graph, is in rows
  /// of its own.
  struct Row {
    uint32_t device = 0, stream = 0;
    uint32_t lane = 0;  ///< 0: what does not overlap, and the first of what does
    size_t end = 0;     ///< of it in `by_row_`
  };

  /// A span, cut to the range of the profile. Times since the start of the recording.
  struct Work {
    const GpuSpan& span;
    const GpuSum& sum;
    const GpuKernel& kernel;
    int64_t begin_ns = 0, end_ns = 0;
    uint32_t launch = 0;      ///< number of its launch, from 1 on; 0: not seen
    bool has_launch = false;  ///< it is in the range, too
  };

  /// One call of the driver. A graph's brings more than one work.
  struct Launch {
    uint32_t number = 0;
    uint32_t tid = 0;
    int64_t time_ns = 0;  ///< since the start of the recording
    size_t works = 0;
    const GpuKernel& kernel;  ///< of its first work
  };

  /// Of a recording without any GPU there is nothing.
  explicit GpuTimeline(const Profile& profile);

  bool empty() const { return by_row_.empty(); }
  /// By device, stream and lane.
  const std::vector<Row>& rows() const { return rows_; }
  /// Of the launches in the range, ascending.
  std::vector<uint32_t> LaunchingThreads() const;

  /// Row by row, in order of time.
  void ForEachWork(FunctionRef<void(const Work&, size_t row)> visit) const;
  /// Those in the range, thread by thread, in order of time.
  void ForEachLaunch(FunctionRef<void(const Launch&)> visit) const;

  /// Indexes of the spans in the range whose launch was seen, by thread, then moment of that.
  const std::vector<uint32_t>& launched() const { return by_launch_; }
  /// Indexes of the spans in the first lane of a stream, in order of time.
  std::span<const uint32_t> FirstLaneOf(uint32_t device, uint32_t stream) const;

 private:
  void SortIntoRows();
  void NumberLaunches();
  const GpuKernel& KernelOf(const GpuSum& sum) const { return record_->kernels[sum.kernel]; }

  const GpuRecord* record_;
  TimelinePart part_;
  std::vector<Row> rows_;
  std::vector<uint32_t> by_row_;     // spans in the range
  std::vector<uint32_t> by_launch_;  // those of them whose launch was seen
  std::vector<uint32_t> launch_of_;  // by span
};

/// Whether there is one in it.
inline bool HasGpuTimeline(const RecordingSource& recording) {
  return recording.gpu() != nullptr && !recording.gpu()->spans.empty();
}

/// The category of work of a kind, as kineto names it.
std::string_view GpuCategory(GpuWorkKind kind);

/// What a launch of such work is called, or of a graph of several. Which of the driver's functions
/// it was is not kept: a kernel may have been launched by cuLaunchKernelEx.
std::string_view LaunchName(GpuWorkKind kind, bool is_graph);

/// "stream 7"; "stream 7 (2)" for the second lane.
std::string RowName(const GpuTimeline::Row& row);

/// "GPU 0 NVIDIA H100".
std::string DeviceName(const RecordingSource& recording, uint32_t device);

/// Of a thread that launched something: "MainThread", or "thread 4242" of one that nothing else is
/// known of.
std::string LaunchingThreadName(const Tables& tables, uint32_t tid);

/// "<module> (app.py:30);forward (torch/nn/modules/linear.py:125)", root first: files of packages
/// without where those are. Of more than 64 frames the innermost ones.
std::string StackText(StackId stack, const Tables& tables);

}  // namespace pystrobe::write
