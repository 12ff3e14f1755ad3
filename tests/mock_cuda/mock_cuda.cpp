// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "tests/mock_cuda/driver.h"

namespace mock_cuda {
namespace {

std::string fail_function;
CUresult fail_result = CUDA_SUCCESS;

}  // namespace

CUresult Begin(const char* function) {
  if (!IsInitialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (fail_function != function) return CUDA_SUCCESS;
  fail_function.clear();
  return fail_result;
}

/// The next call of `function`, as <cuda.h> calls it after its macros, fails so.
EXPORT void mock_fail_next(const char* function, int result) {
  const std::lock_guard lock(mutex);
  fail_function = function;
  fail_result = static_cast<CUresult>(result);
}

EXPORT CUresult CUDAAPI cuGetErrorName(CUresult result, const char** text) {
  static const std::map<CUresult, const char*> kNames{
      {CUDA_SUCCESS, "CUDA_SUCCESS"},
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
  };
  const auto found = kNames.find(result);
  *text = found == kNames.end() ? nullptr : found->second;
  return found == kNames.end() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGetErrorString(CUresult result, const char** text) {
  const char* name = nullptr;
  const CUresult known = cuGetErrorName(result, &name);
  *text = known == CUDA_SUCCESS ? "the mock's words for it" : nullptr;
  return known;
}

EXPORT CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t,
                                         CUdriverProcAddressQueryResult* status) {
#define ENTRY(name) {#name, reinterpret_cast<void*>(&::name)}
  static const std::map<std::string, void*> kFunctions{
      ENTRY(cuGetErrorName),
      ENTRY(cuGetErrorString),
      ENTRY(cuDriverGetVersion),
      ENTRY(cuInit),
      ENTRY(cuDeviceGet),
      ENTRY(cuDeviceGetCount),
      ENTRY(cuDeviceGetName),
      ENTRY(cuDeviceGetAttribute),
      ENTRY(cuDeviceTotalMem),
      ENTRY(cuDevicePrimaryCtxGetState),
      ENTRY(cuDevicePrimaryCtxRetain),
      ENTRY(cuDevicePrimaryCtxRelease),
      ENTRY(cuCtxGetCurrent),
      ENTRY(cuCtxGetDevice),
      ENTRY(cuCtxGetId),
      ENTRY(cuCtxPushCurrent),
      ENTRY(cuCtxPopCurrent),
      ENTRY(cuCtxSetCurrent),
      ENTRY(cuCtxSynchronize),
      ENTRY(cuStreamGetCtx),
      ENTRY(cuStreamSynchronize),
      ENTRY(cuStreamIsCapturing),
      ENTRY(cuStreamWaitValue32),
      ENTRY(cuEventCreate),
      ENTRY(cuEventDestroy),
      ENTRY(cuEventRecord),
      ENTRY(cuEventQuery),
      ENTRY(cuEventSynchronize),
      ENTRY(cuEventElapsedTime),
      ENTRY(cuMemAlloc),
      ENTRY(cuMemFree),
      ENTRY(cuMemsetD32Async),
      ENTRY(cuMemHostAlloc),
      ENTRY(cuMemFreeHost),
      ENTRY(cuMemHostGetDevicePointer),
      ENTRY(cuModuleLoadData),
      ENTRY(cuModuleUnload),
      ENTRY(cuModuleGetFunction),
      ENTRY(cuLaunchKernel),
  };
#undef ENTRY
  const auto found = kFunctions.find(symbol);
  *function = found == kFunctions.end() ? nullptr : found->second;
  *status =
      *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace mock_cuda
