// SPDX-License-Identifier: Apache-2.0
//
// The program's part in a test of gpu/: what calls the mock driver, as PyTorch would the real one.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/handles.h"

namespace pystrobe::gpu {

/// libcuda.so.1 of tests/mock_cuda, which the dynamic linker finds first in these tests.
class MockDriver {
 public:
  MockDriver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << dlerror();
  }

  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void FailNext(const char* function, CUresult result) const {
    Find<void(const char*, int)>("mock_fail_next")(function, result);
  }
  void SetClock(double share) const { Find<void(double)>("mock_set_clock")(share); }
  uint64_t Retains() const { return Find<uint64_t()>("mock_retains")(); }
  uint64_t Events() const { return Find<uint64_t()>("mock_events")(); }
  uint64_t Allocations() const { return Find<uint64_t()>("mock_allocations")(); }
  bool IsInitialized() const { return Find<int()>("mock_is_initialized")() != 0; }

  /// Has a context on this thread.
  void Begin() const {
    CUcontext context = nullptr;
    ASSERT_EQ(Find<CUresult(unsigned)>("cuInit")(0), CUDA_SUCCESS);
    ASSERT_EQ(Find<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(Find<CUresult(CUcontext)>("cuCtxSetCurrent")(context), CUDA_SUCCESS);
  }
  void Reset() const { Find<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2")(0); }
  Stream MakeStream() const {
    CUstream stream = nullptr;
    EXPECT_EQ(Find<CUresult(CUstream*, unsigned)>("cuStreamCreate")(&stream, 0), CUDA_SUCCESS);
    return stream;
  }
  void Destroy(Stream stream) const { Find<CUresult(CUstream)>("cuStreamDestroy_v2")(stream); }
  void Capture(Stream stream, bool on) const {
    Find<void(CUstream, int)>("mock_capture")(stream, on ? 1 : 0);
  }
  CUfunction Kernel(int64_t nanoseconds) const {
    CUfunction kernel = nullptr;
    Find<CUresult(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(
        &kernel, nullptr, ("sleep_" + std::to_string(nanoseconds)).c_str());
    return kernel;
  }
  void Launch(CUfunction kernel, Stream stream = nullptr) const {
    const auto launch = Find<decltype(cuLaunchKernel)>("cuLaunchKernel");
    EXPECT_EQ(launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_SUCCESS);
  }
  /// As many bytes; of its memory nothing is left.
  void CopyAndSet(size_t bytes, Stream stream = nullptr) const {
    std::vector<uint8_t> from(bytes), to(bytes);
    const auto address = reinterpret_cast<CUdeviceptr>(to.data());
    EXPECT_EQ(Find<CUresult(CUdeviceptr, const void*, size_t, CUstream)>("cuMemcpyHtoDAsync_v2")(
                  address, from.data(), bytes, stream),
              CUDA_SUCCESS);
    EXPECT_EQ(Find<CUresult(CUdeviceptr, unsigned, size_t, CUstream)>("cuMemsetD32Async")(
                  address, 0, bytes / sizeof(uint32_t), stream),
              CUDA_SUCCESS);
    Synchronize(stream);
  }
  void Synchronize(Stream stream = nullptr) const {
    Find<CUresult(CUstream)>("cuStreamSynchronize")(stream);
  }

 private:
  void* library_;
};

}  // namespace pystrobe::gpu
