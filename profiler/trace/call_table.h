// SPDX-License-Identifier: Apache-2.0
//
// Call trees added up by function. [any thread, const]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/model/call_rows.h"
#include "profiler/trace/call_tree.h"

namespace pystrobe::trace {

/// What all calls of a function, or all from one caller, come to.
struct CallSums {
  uint64_t calls = 0;
  uint64_t recursive_calls = 0;  ///< of `calls`: made while another of the same kind was open
  uint64_t running = 0;          ///< calls that had begun before the tracing did; not in `calls`
  Ticks self = 0;                ///< wall time in the function itself
  Ticks total = 0;               ///< and in what it called; recursive calls are not counted again
  Ticks self_cpu = 0;
  Ticks total_cpu = 0;
  uint64_t finished = 0;  ///< of `calls`, where they are a coroutine's: those that have ended
  Ticks lifetime = 0;     ///< of these, from the beginning to the end, what they waited included
};

using CalledFunction = CallRow<Key, CallSums>;

/// One row for each function that was called in any of the trees, the most time of its own first;
/// among equals the order is that of the first calls. Each row's `callers` add up to its calls and
/// its self time. Inclusive time of recursive functions is that of their outermost calls.
std::vector<CalledFunction> CallTable(std::span<const CallTree* const> trees);

}  // namespace pystrobe::trace
