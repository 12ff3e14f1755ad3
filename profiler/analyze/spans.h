// SPDX-License-Identifier: Apache-2.0
//
// The calls of a timeline, each from its begin to its end.
#pragma once

#include <cstdint>

#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/recording.h"

namespace pystrobe {

struct Span {
  ThreadIndex thread{};
  StackId stack = kEmptyStack;  ///< the call, and those around it
  int64_t begin_ns = 0;         ///< since the start of the recording
  int64_t end_ns = 0;
};

/// Calls `visit` for each call, as they end, so that a call comes after those that it made. What
/// was open when the recording was cut off ends with the last that is known of its thread. Memory
/// grows with the depth of the stacks only.
Result<void> ForEachSpan(const RecordingSource& recording, FunctionRef<void(const Span&)> visit);

/// The same as begins and ends, in order of time for each thread: `begins` is false for an end.
Result<void> ForEachEdge(const RecordingSource& recording,
                         FunctionRef<void(const Span&, bool begins)> visit);

/// The same as samples, by thread in order of time: what a call has of its own between two edges,
/// and each call that begins. For a recording that was cut off before it had any; what a thread
/// used of CPU time is not known.
Result<void> ForEachSampleOfCalls(const RecordingSource& recording,
                                  FunctionRef<void(const Sample&)> visit);

}  // namespace pystrobe
