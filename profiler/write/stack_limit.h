// SPDX-License-Identifier: Apache-2.0
//
// Formats that list each stack with all its frames: what comes to hundreds of gigabytes, as stacks
// millions deep do, is refused before it is begun. [any thread]
#pragma once

#include <cstdint>

#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Minutes of work. A million stacks of the depth that Python allows by default are a seventeenth.
inline constexpr uint64_t kMostFramesListed = uint64_t{1} << 34;
inline constexpr uint64_t kMostBytesListed = uint64_t{1} << 38;

/// Fails with kInvalidArgument where `frames` are more than that. [any thread]
Result<void> CheckFramesListed(Format format, uint64_t frames);
/// The same of all that `profile` has, each thread's stacks once, and in JSON those of
/// what is told of a GPU; in collapsed stacks, where frames are text, of their bytes as well.
Result<void> CheckStacksListed(Format format, const Profile& profile);

}  // namespace pystrobe::write
