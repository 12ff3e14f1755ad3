// SPDX-License-Identifier: Apache-2.0
//
// Devices and contexts.
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/mock_cuda/driver.h"

namespace mock_cuda {
namespace {

pid_t initialized_in = 0;
std::vector<CUctx_st*> primary;
unsigned long long next_id = 1;
std::atomic<uint64_t> retains{0};
thread_local std::vector<CUctx_st*> stack;

int DeviceCount() {
  const char* const text = std::getenv("MOCK_CUDA_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

}  // namespace

bool IsInitialized() { return initialized_in == getpid(); }

CUctx_st* CurrentContext() { return stack.empty() ? nullptr : stack.back(); }

EXPORT int mock_is_initialized() { return IsInitialized() ? 1 : 0; }
EXPORT uint64_t mock_retains() { return retains; }

EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuInit(unsigned) {
  const std::lock_guard lock(mutex);
  // As the driver does it in a child of who has initialised it.
  if (initialized_in != 0 && initialized_in != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (DeviceCount() == 0) return CUDA_ERROR_NO_DEVICE;
  if (initialized_in == 0) primary.assign(static_cast<size_t>(DeviceCount()), nullptr);
  initialized_in = getpid();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  BEGIN();
  if (ordinal < 0 || ordinal >= DeviceCount()) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  BEGIN();
  *count = DeviceCount();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice) {
  BEGIN();
  std::strncpy(name, "Mock GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  BEGIN();
  static const std::map<CUdevice_attribute, int> kValues{
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, kClockKhz},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2'000'000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 512},
  };
  const auto found = kValues.find(which);
  if (found == kValues.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice) {
  BEGIN();
  *bytes = size_t{8} << 30;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  BEGIN();
  auto& own = primary[static_cast<size_t>(device)];
  if (own == nullptr || own->is_gone) own = new CUctx_st{device, next_id++};
  ++retains;
  *context = own;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  BEGIN();
  const auto* const own = primary[static_cast<size_t>(device)];
  *flags = 0;
  *active = own != nullptr && !own->is_gone;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) {
  BEGIN();
  --retains;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  BEGIN();
  if (auto* const own = primary[static_cast<size_t>(device)]) own->is_gone = true;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  BEGIN();
  *context = CurrentContext();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  BEGIN();
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = CurrentContext()->device;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  BEGIN();
  if (context->is_gone) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context->id;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  BEGIN();
  if (context->is_gone) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  stack.push_back(context);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  BEGIN();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  BEGIN();
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

}  // namespace mock_cuda
