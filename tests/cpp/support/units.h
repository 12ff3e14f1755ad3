// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pystrobe::testing {

/// A millisecond in nanoseconds, as recordings have times and durations.
inline constexpr int64_t kMs = 1'000'000;

}  // namespace pystrobe::testing
