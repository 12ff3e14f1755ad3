// SPDX-License-Identifier: Apache-2.0
//
// The calls of a timeline, each from its begin to its end.
#pragma once

#include <cstdint>
#include <limits>

#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/recording.h"

namespace pystrobe {

struct Span {
  ThreadIndex thread{};
  StackId stack = kEmptyStack;  ///< the call, and those around it
  int64_t begin_ns = 0;         ///< since the start of the recording
  int64_t end_ns = 0;
  bool began_before = false;  ///< the range, at whose begin it is cut
  bool goes_on = false;       ///< after the range, at whose end it is cut
};

/// From the start of a recording, what is in (since_ns, until_ns]; since_ns of 0 or less: no lower
/// bound.
struct TimeRange {
  int64_t since_ns = 0;
  int64_t until_ns = std::numeric_limits<int64_t>::max();
};

/// What of the recording `profile` shows. The whole has no end: a call may seem to end later.
TimeRange RangeOf(const Profile& profile);

/// Calls `visit` for each call that has part of the range, as they end, so that a call comes after
/// those that it made. What was open when the recording was cut off ends with the last that is
/// known of its thread. Memory grows with the depth of the stacks only.
Result<void> ForEachSpan(const RecordingSource& recording, FunctionRef<void(const Span&)> visit,
                         const TimeRange& range = {});

/// The same as begins and ends, in order of time for each thread: `begins` is false for an end.
Result<void> ForEachEdge(const RecordingSource& recording,
                         FunctionRef<void(const Span&, bool begins)> visit,
                         const TimeRange& range = {});

/// The same as samples, by thread in order of time: what a call has of its own between two edges,
/// and each call that begins. `visit_edge` is told of the edges. What a thread used of CPU time is
/// not known.
Result<void> ForEachSampleOfCalls(const RecordingSource& recording, const TimeRange& range,
                                  FunctionRef<void(const Sample&)> visit,
                                  FunctionRef<void(const Span&, bool begins)> visit_edge);

}  // namespace pystrobe
