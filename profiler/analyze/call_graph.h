// SPDX-License-Identifier: Apache-2.0
//
// Who called whom, ways to it put together: what formats hold that have no stacks. [any thread]
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/model/call_rows.h"

namespace pystrobe {

/// What all calls of a function come to, or those from one caller. Of a traced recording, in which
/// Weights::samples are calls.
struct CallSums {
  Weights self;
  Weights total;           ///< that of calls within others of the same kind is in these already
  uint64_t recursive = 0;  ///< of self.samples: calls within others of the same kind
};

using CalledFunction = CallRow<FunctionId, CallSums>;

/// In the order in which they are met, all threads together.
std::vector<CalledFunction> BuildCallGraph(const Profile& profile);

}  // namespace pystrobe
