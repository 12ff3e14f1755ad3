// SPDX-License-Identifier: Apache-2.0
//
// What a recording says of the process that it is of.
#pragma once

#include <string>

#include "profiler/base/clock.h"
#include "profiler/model/recording.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// All of Metadata but how it is sampled: pause_mode, wanted_rate_hz and max_overhead. `start`:
/// CLOCK_MONOTONIC of the recording's beginning. [any thread]
Metadata DescribeTarget(const Target& target, std::string pystrobe_version, Nanoseconds start);

}  // namespace pystrobe::remote
