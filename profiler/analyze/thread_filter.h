// SPDX-License-Identifier: Apache-2.0
//
// Private to analyze: threads that are asked for by name or number. [any thread]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"

namespace pystrobe::analyze {

/// By ThreadIndex, whether a thread is one of those that `filter` means: a part of its name, or its
/// id; without one, all are. Fails with kInvalidArgument where none is meant, and names those that
/// there are.
Result<std::vector<bool>> KeptThreads(const RecordingSource& recording,
                                      const std::optional<std::string>& filter);

}  // namespace pystrobe::analyze
