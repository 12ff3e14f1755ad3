// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/function_tables.h"

namespace pystrobe::trace {

FrameId FunctionTables::Define(const FunctionFacts& facts) {
  const FunctionId function = tables_.Intern(Function{.name = tables_.Intern(facts.name),
                                                      .file = tables_.Intern(facts.file),
                                                      .first_line = facts.first_line});
  return tables_.Intern(Frame{function, facts.first_line});
}

}  // namespace pystrobe::trace
