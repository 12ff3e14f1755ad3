// SPDX-License-Identifier: Apache-2.0
//
// Signed arithmetic on numbers from a file, which may hold any: what does not fit wraps around.
#pragma once

#include <cstdint>

namespace pystrobe {

constexpr int64_t WrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

constexpr int64_t WrappingSubtract(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace pystrobe
