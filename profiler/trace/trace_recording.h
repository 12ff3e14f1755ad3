// SPDX-License-Identifier: Apache-2.0
//
// Traced calls as a recording, so that every report can be made of them. [one thread]
#pragma once

#include <string>

#include "profiler/base/function_ref.h"
#include "profiler/model/recording.h"
#include "profiler/trace/trace_session.h"

namespace pystrobe::trace {

/// What the hooks know of a function.
struct FunctionFacts {
  std::string name;
  std::string file;
  uint32_t first_line = 0;
};

/// How the calls were seen.
struct SeenBy {
  std::string engine;      ///< for people
  double ns_per_call = 0;  ///< what a call and its end cost the program, about
  std::string trouble;     ///< why some were not seen; empty: nothing is known of any
};

/// Appends what was traced to `sink`, whole, from Begin to Finish: for each function and each way
/// to it one sample that has its own wall and CPU time, and as its count the calls that began.
/// `metadata`: all but the times, which are the session's. After TraceSession::Stop.
Result<void> RecordTrace(const TraceSession& session, Metadata metadata, const SeenBy& seen_by,
                         FunctionRef<const FunctionFacts&(Key)> facts,
                         FunctionRef<std::string(pid_t)> name_of_thread, RecordingSink& sink);

}  // namespace pystrobe::trace
