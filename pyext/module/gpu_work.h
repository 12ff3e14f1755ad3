// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did for this process, and the ranges that it named, into a recording. [any thread]
#pragma once

#include "profiler/base/error.h"
#include "pyext/launch/gpu_trace.h"

namespace pystrobe::pyext {

/// What there is of it. `sink`: a StrobeWriter or Recorder, begun and not finished.
template <typename Sink>
Result<void> AppendWork(const launch::GpuWorkOfProcess& work, Sink& sink) {
  if (work.has_gpu) {
    if (auto done = sink.AppendGpu(work.tables, work.record); !done) return done;
  }
  if (work.ranges.ranges.empty()) return {};
  return sink.AppendRanges(work.tables, work.ranges);
}

}  // namespace pystrobe::pyext
