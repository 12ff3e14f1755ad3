// SPDX-License-Identifier: Apache-2.0
//
// Recordings with known content, for the tests of the writers and for readers that are not ours.
#pragma once

#include <string_view>
#include <vector>

#include "tests/cpp/support/memory_recording.h"

namespace pystrobe::testing {

/// Names of the recordings there are:
/// "shop"   three threads, 1 s; MainThread: 600 ms in `encode`, 300 ms in `read` waiting, 100 ms in
///          `main` itself; a worker that starts at 500 ms; a thread without a name that never ran
/// "odd"    one stack for each name that a format could stumble over
/// "empty"  no thread, no sample
/// "idle"   one thread whose samples all weigh nothing
/// "deep"   one stack of 1,000 functions
/// "large"  10 s at 1 kHz over some 500 stacks of up to 40 functions
/// "wide"   100,000 stacks
/// "gaps"   100 ms: 20 before the first look, 60 in `serve`, 20 outside Python; 120 ms of CPU time
///          of threads that were not sampled
/// "split"  100 ms of CPU time, with C functions: Python 20, native 50, kernel 30
/// "calls"  a trace of 10,006 calls: `step` is called 10,000 times by `main`, 3 times by `run`, and
///          calls `check` twice, which takes no time
/// "gpu"    1 s of CPU time in `train`, and what it had a GPU do: MakeGpuExample()
/// "gpu alone"  the same, of which no thread was sampled
/// "gpu-timeline"  each of the few calls of 4 ms, and what they launched: gpu_example.h's spans
const std::vector<std::string_view>& ExampleNames();

/// Fills `recording` with the example of that name; false when there is none.
bool FillExample(std::string_view name, MemoryRecording& recording);

/// The names in "odd", as they are in the recorded program.
const std::vector<std::string_view>& OddNames();

}  // namespace pystrobe::testing
