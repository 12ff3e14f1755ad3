// SPDX-License-Identifier: Apache-2.0
//
// libcuda.so.1 for machines without a GPU: as much of the driver as gpu/ and its tests call, a file
// for each of its parts. Here is what they share. [any thread]
//
// MOCK_CUDA_DEVICES is how many devices there are (1). Functions called mock_* are for tests.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct CUctx_st {
  CUdevice device;
  unsigned long long id;
  bool is_gone = false;
};

namespace mock_cuda {

inline constexpr int64_t kClockKhz = 1'000'000;

inline std::recursive_mutex mutex;

/// What any call returns first. [with the mutex]
CUresult Begin(const char* function);

#define BEGIN()                                 \
  const std::lock_guard lock(mock_cuda::mutex); \
  if (const CUresult begun = mock_cuda::Begin(__func__); begun != CUDA_SUCCESS) return begun

/// In this process, not in one that it was forked from.
bool IsInitialized();
/// Of this thread; null: none.
CUctx_st* CurrentContext();

}  // namespace mock_cuda
