// SPDX-License-Identifier: Apache-2.0
//
// What the proofs on a device need of CUDA that Python cannot do, or not fast enough. Built there
// by helper.py, which says what each function is for. The driver and CUPTI are those that the
// process has already.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kBufferBytes = 4 << 20;  // as ours are

constexpr CUpti_CallbackId kLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
};
constexpr CUpti_ActivityKind kRecords[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

void* driver = nullptr;
void* cupti = nullptr;
#define CUDA(name) reinterpret_cast<decltype(&::name)>(dlsym(driver, #name))
#define CUPTI(name) reinterpret_cast<decltype(&::name)>(dlsym(cupti, #name))

CUpti_SubscriberHandle subscriber = nullptr;
bool has_records = false;

std::mutex mutex;  // of what follows
std::vector<uint8_t*> free_buffers;

struct Seen {
  char name[256];
  int threads, dynamic_shared;
  int blocks;    // on a multiprocessor
  int clusters;  // on the device; 0: it has none
};
std::vector<Seen> seen;

void CUPTIAPI Ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void CUPTIAPI Lend(uint8_t** buffer, size_t* size, size_t* max_records) {
  const std::lock_guard lock(mutex);
  if (free_buffers.empty()) {
    free_buffers.push_back(static_cast<uint8_t*>(std::aligned_alloc(4096, kBufferBytes)));
  }
  *buffer = free_buffers.back();
  free_buffers.pop_back();
  *size = kBufferBytes;
  *max_records = 0;
}

void CUPTIAPI TakeBack(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  const std::lock_guard lock(mutex);
  free_buffers.push_back(buffer);
}

int ClustersOf(CUfunction function, const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& one = config.attrs[i];
    if (one.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = one.value.clusterDim;
    int clusters = 0;
    if (size.x * size.y * size.z <= 1) return 0;
    CUDA(cuOccupancyMaxActiveClusters)(&clusters, function, &config);
    return clusters;
  }
  return 0;
}

void Note(const char* name, CUfunction function, unsigned threads, unsigned dynamic_shared,
          int clusters) {
  Seen one{{}, static_cast<int>(threads), static_cast<int>(dynamic_shared), 0, clusters};
  std::strncpy(one.name, name != nullptr ? name : "", sizeof one.name - 1);
  CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor)
  (&one.blocks, function, one.threads, dynamic_shared);
  const std::lock_guard lock(mutex);
  seen.push_back(one);
}

void CUPTIAPI Look(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER) return;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
    const auto& one = *static_cast<const cuLaunchKernel_params*>(call.functionParams);
    Note(call.symbolName, one.f, one.blockDimX * one.blockDimY * one.blockDimZ, one.sharedMemBytes,
         0);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx) {
    const auto& one = *static_cast<const cuLaunchKernelEx_params*>(call.functionParams);
    const CUlaunchConfig& config = *one.config;
    Note(call.symbolName, one.f, config.blockDimX * config.blockDimY * config.blockDimZ,
         config.sharedMemBytes, ClustersOf(one.f, config));
  }
}

int Leave() {
  CUPTI(cuptiUnsubscribe)(subscriber);
  return CUPTI(cuptiFinalize)();
}

int Subscribe(CUpti_CallbackFunc callback) {
  CUptiResult result = CUPTI(cuptiSubscribe)(&subscriber, callback, nullptr);
  for (const CUpti_CallbackId id : kLaunches) {
    if (result != CUPTI_SUCCESS) break;
    result = CUPTI(cuptiEnableCallback)(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  if (result != CUPTI_SUCCESS) Leave();
  return result;
}

}  // namespace

EXPORT int helper_open(const char* cupti_library) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  cupti = dlopen(cupti_library, RTLD_NOW);
  return driver != nullptr && cupti != nullptr;
}

EXPORT int helper_start(int records) {
  int result = Subscribe(Ignore);
  has_records = records != 0;
  if (result != 0 || !has_records) return result;
  result = CUPTI(cuptiActivityRegisterCallbacks)(Lend, TakeBack);
  for (const CUpti_ActivityKind kind : kRecords) {
    if (result == 0) result = CUPTI(cuptiActivityEnable)(kind);
  }
  if (result != 0) Leave();
  return result;
}

EXPORT int helper_look() {
  {
    const std::lock_guard lock(mutex);
    seen.clear();
  }
  has_records = false;
  return Subscribe(Look);
}

EXPORT int helper_stop() {
  if (has_records) {
    for (const CUpti_ActivityKind kind : kRecords) CUPTI(cuptiActivityDisable)(kind);
    CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
  return Leave();
}

EXPORT size_t helper_seen(const Seen** first) {
  *first = seen.data();
  return seen.size();
}

EXPORT int helper_launch(const char* ptx, const char* name, uint64_t count, unsigned threads,
                         unsigned dynamic_shared) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int result = CUDA(cuModuleLoadData)(&module, ptx);
  if (result == 0) result = CUDA(cuModuleGetFunction)(&function, module, name);
  if (result == 0 && dynamic_shared > 48 * 1024) {
    result = CUDA(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(dynamic_shared));
  }
  const auto launch = CUDA(cuLaunchKernel);
  for (uint64_t i = 0; i < count && result == 0; ++i) {
    result = launch(function, 1, 1, 1, threads, 1, 1, dynamic_shared, nullptr, nullptr, nullptr);
  }
  if (result == 0) result = CUDA(cuStreamSynchronize)(nullptr);
  if (module != nullptr) CUDA(cuModuleUnload)(module);
  return result;
}
