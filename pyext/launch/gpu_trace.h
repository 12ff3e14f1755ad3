// SPDX-License-Identifier: Apache-2.0
//
// What a GPU does for this process, by the Python calls that asked for it and by the ranges that it
// was asked for in.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "gpu/cupti_session.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/model/gpu_record.h"
#include "profiler/model/range_record.h"
#include "profiler/model/tables.h"
#include "pyext/launch/python_paths.h"
#include "pyext/launch/range_trace.h"

namespace pystrobe::launch {

struct GpuWorkOfProcess {
  Tables tables;  ///< the records' own
  GpuRecord record;
  RangeRecord ranges;
  Nanoseconds begin{};  ///< of its duration, by CLOCK_MONOTONIC
  bool has_gpu = true;  ///< false: of ranges alone, the record has nothing but the duration
};

/// One at a time in a process. All of it is called with the GIL, which is given away where the
/// device or a launch may be waited for. In a child of fork() there is nothing to be had of it.
class GpuTrace {
 public:
  /// Fails where there is no CUPTI, somebody else has it, or a trace runs already.
  static Result<std::unique_ptr<GpuTrace>> Start(const gpu::CuptiOptions& options);
  ~GpuTrace();
  GpuTrace(const GpuTrace&) = delete;
  GpuTrace& operator=(const GpuTrace&) = delete;

  /// Waits for all devices, and starts over: what was done until now counts for nothing. While a
  /// stream is captured into a graph nothing is waited for, which would spoil that, here and in
  /// Stop; GpuQuality::source tells.
  void Restart();
  /// Waits for all devices, and ends. Once. What could not be had of the end, a device that failed
  /// say, is told in GpuQuality::source; the rest is there all the same.
  GpuWorkOfProcess Stop();
  /// Stops, and drops what was found. Nothing after Stop.
  void Drop();
  /// What Stop would give now, without ranges, without a timeline, and without waiting for the
  /// devices: for the case that the program comes to no end. None once it has ended.
  /// [any thread; without the GIL]
  std::optional<GpuWorkOfProcess> SoFar() const;

 private:
  GpuTrace(PythonPaths& paths, std::unique_ptr<gpu::CuptiSession> session, size_t max_spans);
  Result<void> WaitForDevices() const;
  void RemarkOnBegin(GpuWorkOfProcess& work) const;

  PythonPaths& paths_;
  mutable std::mutex mutex_;  // SoFar's, against what ends or restarts
  std::unique_ptr<Tables> paths_so_far_ = std::make_unique<Tables>();
  std::unique_ptr<gpu::CuptiSession> session_;
  std::unique_ptr<RangeTrace> ranges_;  // null where others trace them
  Nanoseconds begin_;
  Result<void> waited_;  // for the devices, as it began over
};

/// What there is where there is no GPU, or somebody else has CUPTI: the ranges alone. Ends the
/// trace.
GpuWorkOfProcess RangesAlone(RangeTrace& trace);

}  // namespace pystrobe::launch
