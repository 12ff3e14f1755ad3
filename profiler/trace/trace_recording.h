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

/// Appends what was traced to `sink`, whole, from Begin to Finish: for each function and each way
/// to it one sample that has its own wall and CPU time, and as its count the calls that began.
/// `metadata`: all but the times, which are the session's. `engine`: what the calls were seen by,
/// for people. After TraceSession::Stop.
Result<void> RecordTrace(const TraceSession& session, Metadata metadata, const std::string& engine,
                         FunctionRef<const FunctionFacts&(Key)> facts,
                         FunctionRef<std::string(pid_t)> name_of_thread, RecordingSink& sink);

}  // namespace pystrobe::trace
