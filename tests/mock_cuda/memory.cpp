// SPDX-License-Identifier: Apache-2.0
//
// Memory, all of it the host's.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/mock_cuda/stream.h"

namespace mock_cuda {
namespace {

constexpr int64_t kBytesEachNanosecond = 3000;

std::atomic<uint64_t> live_allocations{0};

}  // namespace

EXPORT uint64_t mock_allocations() { return live_allocations; }

EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  BEGIN();
  *address = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  ++live_allocations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  BEGIN();
  std::free(reinterpret_cast<void*>(address));
  --live_allocations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count,
                                         CUstream stream) {
  Seen seen({.function = "cuMemsetD32Async", .bytes = count * sizeof(uint32_t)});
  BEGIN();
  Operation set;
  set.duration = static_cast<int64_t>(count * sizeof(uint32_t)) / kBytesEachNanosecond;
  set.run = [address, value, count](int64_t) {
    auto* const words = reinterpret_cast<uint32_t*>(address);
    std::fill(words, words + count, value);
  };
  return seen.Exit(seen.Put(stream, std::move(set)));
}

EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes,
                                          CUstream stream) {
  Seen seen({.function = "cuMemcpyHtoDAsync_v2", .bytes = bytes});
  BEGIN();
  Operation copy;
  copy.duration = static_cast<int64_t>(bytes) / kBytesEachNanosecond;
  copy.run = [to, from, bytes](int64_t) { std::memcpy(reinterpret_cast<void*>(to), from, bytes); };
  return seen.Exit(seen.Put(stream, std::move(copy)));
}

EXPORT CUresult CUDAAPI cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  BEGIN();
  *memory = std::malloc(bytes);
  ++live_allocations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemFreeHost(void* memory) {
  BEGIN();
  std::free(memory);
  --live_allocations;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  BEGIN();
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

}  // namespace mock_cuda
