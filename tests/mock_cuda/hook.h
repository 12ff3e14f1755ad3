// SPDX-License-Identifier: Apache-2.0
//
// How libcupti of tests/mock_cupti sees what is put on a stream of the mock driver.
#pragma once

#include <cstdint>

/// One call that puts something on a stream, from before it until the device has done it.
struct MockCudaCall {
  const char* function;      ///< "cuLaunchKernel"
  const char* symbol = "";   ///< the kernel's name
  uint32_t correlation = 0;  ///< of whoever looks: it may set it in `enter`
  uint32_t stream = 0;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;
  uint64_t bytes = 0;  ///< of a copy or set
};

/// Any thread calls these. Times are nanoseconds of CLOCK_MONOTONIC.
struct MockCudaHook {
  void (*enter)(MockCudaCall&);
  void (*exit)(const MockCudaCall&, int result);
  void (*done)(const MockCudaCall&, int64_t begin, int64_t end);
};

/// Null: nobody looks. It must outlive every call that has begun.
using MockSetHook = void(const MockCudaHook*);
