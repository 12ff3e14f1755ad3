// SPDX-License-Identifier: Apache-2.0
//
// Traced calls as a recording, so that every report can be made of them. [one thread]
#pragma once

#include <string>
#include <vector>

#include "profiler/base/function_ref.h"
#include "profiler/model/recording.h"
#include "profiler/trace/call_stream.h"
#include "profiler/trace/function_tables.h"
#include "profiler/trace/trace_session.h"

namespace pystrobe::trace {

/// How the calls were seen.
struct SeenBy {
  std::string engine;      ///< for people
  double ns_per_call = 0;  ///< what a call and its end cost the program, about; deep ones too
  std::string trouble;     ///< why some were not seen; empty: nothing is known of any
  bool filtered = false;   ///< functions were left out, as asked for
  std::vector<std::string> unused_patterns;  ///< those of the filter that fitted no function
};

/// What a recording of the session begins with. `metadata`: all but the times and what tells that
/// it is of calls.
Metadata MetadataOf(const TraceSession& session, Metadata metadata);

/// In words, for people: why calls may not be told; none where all of them are. `trouble`: as
/// SeenBy's. After TraceSession::Stop.
std::vector<std::string> WhatIsMissing(const TraceSession& session, const std::string& trouble);

/// Appends what was traced to `sink`, which has begun with MetadataOf, and finishes it: for each
/// function and each way to it one sample that has its own wall and CPU time, and as its count the
/// calls that began. After TraceSession::Stop. `timeline`: what has written into `sink` meanwhile,
/// and is stopped.
Result<void> RecordTrace(const TraceSession& session, const SeenBy& seen_by,
                         FunctionRef<const FunctionFacts&(Key)> facts,
                         FunctionRef<std::string(pid_t)> name_of_thread, RecordingSink& sink,
                         CallStream* timeline = nullptr);

}  // namespace pystrobe::trace
