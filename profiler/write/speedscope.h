// SPDX-License-Identifier: Apache-2.0
//
// The inside of WriteSpeedscope, for its test.
#pragma once

#include "profiler/write/writer.h"

namespace pystrobe::write {

/// WriteSpeedscope with the number of runs (neighbouring samples of one stack; 24 bytes each) or,
/// of a timeline, begins and ends of calls (16 bytes) that it may keep in memory. The bytes written
/// do not depend on it.
Result<void> WriteSpeedscopeWithin(uint64_t runs_in_memory, const Profile& profile,
                                   const WriteOptions& options, Output& output);

}  // namespace pystrobe::write
