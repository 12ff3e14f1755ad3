// SPDX-License-Identifier: Apache-2.0
//
// Functions of tests: addresses, and nothing is there but a letter.
#pragma once

#include <cstddef>

#include "profiler/trace/thread_trace.h"

namespace pystrobe::trace {

/// `i` below 1,000.
inline Key KeyOf(size_t i) {
  static constexpr char kFunctions[1000] = {};
  return kFunctions + i;
}

/// `name` from a to h; it can be read there.
inline Key KeyNamed(char name) {
  static constexpr char kFunctions[] = "abcdefgh";
  return kFunctions + (name - 'a');
}

}  // namespace pystrobe::trace
