// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver, found at run time. For gpu's own source files: this header
// needs <cuda.h>.
#pragma once

#include <cuda.h>

#include "profiler/base/error.h"

namespace pystrobe::gpu {

// Each as CUDA 12.0 has it, which later drivers offer too: cuGetProcAddress is asked for that
// version. (Where <cuda.h> gives a name a suffix, the signature is the same.)
#define PYSTROBE_DRIVER_FUNCTIONS(X) \
  X(cuGetErrorName)                  \
  X(cuGetErrorString)                \
  X(cuDriverGetVersion)              \
  X(cuInit)                          \
  X(cuDeviceGet)                     \
  X(cuDeviceGetCount)                \
  X(cuDeviceGetName)                 \
  X(cuDeviceGetAttribute)            \
  X(cuDeviceTotalMem)                \
  X(cuDevicePrimaryCtxGetState)      \
  X(cuDevicePrimaryCtxRetain)        \
  X(cuDevicePrimaryCtxRelease)       \
  X(cuCtxGetCurrent)                 \
  X(cuCtxGetDevice)                  \
  X(cuCtxGetId)                      \
  X(cuCtxPushCurrent)                \
  X(cuCtxPopCurrent)                 \
  X(cuCtxSynchronize)                \
  X(cuStreamGetCtx)                  \
  X(cuStreamSynchronize)             \
  X(cuStreamIsCapturing)             \
  X(cuStreamWaitValue32)             \
  X(cuEventCreate)                   \
  X(cuEventDestroy)                  \
  X(cuEventRecord)                   \
  X(cuEventQuery)                    \
  X(cuEventSynchronize)              \
  X(cuEventElapsedTime)              \
  X(cuMemAlloc)                      \
  X(cuMemFree)                       \
  X(cuMemsetD32Async)                \
  X(cuMemHostAlloc)                  \
  X(cuMemFreeHost)                   \
  X(cuMemHostGetDevicePointer)       \
  X(cuModuleLoadData)                \
  X(cuModuleUnload)                  \
  X(cuModuleGetFunction)             \
  X(cuLaunchKernel)

/// [any thread]
struct DriverApi {
#define PYSTROBE_DECLARE(name) decltype(&::name) name = nullptr;
  PYSTROBE_DRIVER_FUNCTIONS(PYSTROBE_DECLARE)
#undef PYSTROBE_DECLARE

  /// Loads the driver's library, unless the process has it, and finds its functions. Initialises
  /// nothing (no cuInit). Fails where there is none, or it is older than CUDA 12.0. Looks once.
  static Result<const DriverApi*> Load();

  /// The failure that `result` is, of `what` was tried: "reading an event: CUDA_ERROR_...".
  Error ErrorOf(CUresult result, std::string_view what) const;
  Result<void> Check(CUresult result, std::string_view what) const {
    if (result == CUDA_SUCCESS) return {};
    return std::unexpected(ErrorOf(result, what));
  }
};

}  // namespace pystrobe::gpu
