// SPDX-License-Identifier: Apache-2.0
//
// Values as people type them on the command line. Parsers fail with kInvalidArgument, name the
// option and show the text they saw. [any thread]
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::cli {

/// "1000", "0.5", "2e3": samples a second, above 0 and up to remote::kMaxRateHz.
Result<double> ParseRate(std::string_view text);
/// "10", "2.5", "500ms", "10s", "2m", "1h". Above zero unless `zero_allowed`; a century at most.
Result<Nanoseconds> ParseDuration(std::string_view option, std::string_view text,
                                  bool zero_allowed = false);
/// "1%" or "0.01": a share above 0 and up to 100 %. A number of 1 or more without "%" is refused:
/// nobody can tell what it means.
Result<double> ParseShare(std::string_view option, std::string_view text);
/// A process id: digits only, above 0, not our own.
Result<pid_t> ParsePid(std::string_view text);
/// A whole number from 1 on.
Result<uint32_t> ParseCount(std::string_view option, std::string_view text);
/// How many calls within each other: a whole number from 1 to kMostMaxDepth.
Result<uint32_t> ParseDepth(std::string_view option, std::string_view text);
inline constexpr uint32_t kMostMaxDepth = 131'072;

}  // namespace pystrobe::cli
