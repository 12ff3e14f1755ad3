// SPDX-License-Identifier: Apache-2.0
//
// libcupti.so.13 for machines without a GPU: as much of CUPTI's first interface as gpu/ calls. What
// the mock driver is given to do comes by its hook; mock_cupti_* below are for tests.
//
// Like the real one it may still call a subscriber that is leaving, starts its correlation ids over
// after cuptiFinalize, tells times of CLOCK_REALTIME, drops what there is no buffer for, and has
// records longer than those of the headers that gpu/ reads them by.
#include <cupti.h>
#include <dlfcn.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "tests/mock_cuda/hook.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// What later versions put behind the fields of CUDA 12.0.
struct KernelRecord {
  CUpti_ActivityKernel9 fields;
  uint64_t later[2];
};
struct CopyRecord {
  CUpti_ActivityMemcpy5 fields;
  uint64_t later[2];
};
struct SetRecord {
  CUpti_ActivityMemset4 fields;
  uint64_t later[2];
};

constexpr size_t kCallbackIds = 1024;
constexpr uint64_t kLater = 0xabababababababab;

struct Subscriber {
  CUpti_CallbackFunc function;
  void* data;
};

std::mutex mutex;  // of what is not atomic
std::atomic<const Subscriber*> subscriber{nullptr};
std::array<std::atomic<bool>, kCallbackIds> enabled;  // of the driver's functions
std::array<std::atomic<bool>, kCallbackIds> enabled_resources;
std::array<std::atomic<bool>, CUPTI_ACTIVITY_KIND_COUNT> kinds;
std::atomic<uint32_t> next_correlation{1};
std::atomic<uint64_t> calls{0}, records{0}, finalized{0};
std::atomic<uint32_t> version{130001};
bool is_held = false;  // by another tool
std::string fail_function;
CUptiResult fail_result = CUPTI_SUCCESS;
uint64_t fail_times = 0;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
uint8_t* buffer = nullptr;
size_t buffer_size = 0, buffer_used = 0;
size_t dropped = 0;

int64_t ReadClock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

const std::map<std::string, CUpti_CallbackId>& Ids() {
  static const std::map<std::string, CUpti_CallbackId> kIds{
      {"cuLaunchKernel", CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel},
      {"cuGraphLaunch", CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch},
      {"cuStreamBeginCapture_v2", CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2},
      {"cuStreamEndCapture", CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture},
      {"cuStreamSynchronize", CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize},
      {"cuMemsetD32Async", CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async},
      {"cuMemcpyHtoDAsync_v2", CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2},
  };
  return kIds;
}

CUptiResult Begin(const char* function) {
  ++calls;
  if (fail_times == 0 || fail_function != function) return CUPTI_SUCCESS;
  --fail_times;
  return fail_result;
}

#define BEGIN()                      \
  const std::lock_guard lock(mutex); \
  if (const CUptiResult begun = Begin(__func__); begun != CUPTI_SUCCESS) return begun

void Complete() {
  if (buffer != nullptr) complete(nullptr, 0, buffer, buffer_size, buffer_used);
  buffer = nullptr;
}

template <typename Record>
void Write(const Record& record) {
  const std::lock_guard lock(mutex);
  if (request == nullptr) return;
  if (buffer != nullptr && buffer_used + sizeof record > buffer_size) Complete();
  if (buffer == nullptr) {
    size_t most = 0;
    buffer_size = buffer_used = 0;
    request(&buffer, &buffer_size, &most);
  }
  if (buffer == nullptr || buffer_size < sizeof record) {
    ++dropped;
    return;
  }
  std::memcpy(buffer + buffer_used, &record, sizeof record);
  buffer_used += sizeof record;
  ++records;
}

// What records of all kinds have.
template <typename Fields>
void Stamp(Fields& fields, const MockCudaCall& call, uint64_t begin, uint64_t end) {
  fields.start = begin;
  fields.end = end;
  fields.contextId = 1;
  fields.streamId = call.stream;
  fields.correlationId = call.correlation;
}

// `node`: of a graph; 0: of none.
void WriteKernel(const MockCudaCall& call, uint64_t begin, uint64_t end, uint64_t node = 0) {
  if (!kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]) return;
  KernelRecord record{{}, {kLater, kLater}};
  auto& fields = record.fields;
  fields.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  fields.registersPerThread = 32;
  Stamp(fields, call, begin, end);
  fields.gridX = static_cast<int32_t>(call.grid[0]);
  fields.gridY = static_cast<int32_t>(call.grid[1]);
  fields.gridZ = static_cast<int32_t>(call.grid[2]);
  fields.blockX = static_cast<int32_t>(call.block[0]);
  fields.blockY = static_cast<int32_t>(call.block[1]);
  fields.blockZ = static_cast<int32_t>(call.block[2]);
  fields.dynamicSharedMemory = static_cast<int32_t>(call.dynamic_shared);
  fields.name = call.symbol;
  fields.graphNodeId = node;
  Write(record);
}

void WriteCopy(const MockCudaCall& call, uint64_t begin, uint64_t end) {
  if (!kinds[CUPTI_ACTIVITY_KIND_MEMCPY]) return;
  CopyRecord record{{}, {kLater, kLater}};
  auto& fields = record.fields;
  fields.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  fields.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  fields.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  fields.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  fields.bytes = call.bytes;
  Stamp(fields, call, begin, end);
  Write(record);
}

void WriteSet(const MockCudaCall& call, uint64_t begin, uint64_t end) {
  if (!kinds[CUPTI_ACTIVITY_KIND_MEMSET]) return;
  SetRecord record{{}, {kLater, kLater}};
  auto& fields = record.fields;
  fields.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fields.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  fields.bytes = call.bytes;
  Stamp(fields, call, begin, end);
  Write(record);
}

// Of the call that the thread is in.
thread_local uint64_t between_sites = 0;

void CallBack(const MockCudaCall& call, CUpti_ApiCallbackSite site, int result) {
  const Subscriber* const to = subscriber;
  const auto found = Ids().find(call.function);
  if (to == nullptr || found == Ids().end() || !enabled[found->second]) return;
  CUresult returned = static_cast<CUresult>(result);
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.function;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &returned : nullptr;
  data.symbolName = call.symbol;
  data.correlationData = &between_sites;
  data.correlationId = call.correlation;
  to->function(to->data, CUPTI_CB_DOMAIN_DRIVER_API, found->second, &data);
}

// Graphs and nodes are their own numbers: bits 32 and up of a node's are its graph's.
uint32_t next_graph = 1;
std::atomic<uint32_t> device_of_contexts{0};

void TellOfGraph(CUpti_CallbackIdResource id, uint64_t graph, uint64_t node = 0,
                 uint64_t original = 0) {
  const Subscriber* const to = subscriber;
  if (to == nullptr || !enabled_resources[id]) return;
  CUpti_GraphData data{};
  data.graph = reinterpret_cast<CUgraph>(graph);
  data.node = reinterpret_cast<CUgraphNode>(node);
  data.originalNode = reinterpret_cast<CUgraphNode>(original);
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &data;
  to->function(to->data, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
}

uint64_t NodeOf(uint64_t graph, uint64_t index) { return graph << 32 | index; }

void Enter(MockCudaCall& call) {
  call.correlation = next_correlation++;
  CallBack(call, CUPTI_API_ENTER, 0);
}
void Exit(const MockCudaCall& call, int result) { CallBack(call, CUPTI_API_EXIT, result); }

void Done(const MockCudaCall& call, int64_t begin, int64_t end) {
  const int64_t offset = ReadClock(CLOCK_REALTIME) - ReadClock(CLOCK_MONOTONIC);
  const auto from = static_cast<uint64_t>(begin + offset), to = static_cast<uint64_t>(end + offset);
  const std::string_view function = call.function;
  if (function.starts_with("cuMemset")) {
    WriteSet(call, from, to);
  } else if (function.starts_with("cuMemcpy")) {
    WriteCopy(call, from, to);
  } else {
    WriteKernel(call, from, to);
  }
}

constexpr MockCudaHook kHook{Enter, Exit, Done};

// The driver calls the hook from now on, if the process has it.
void Look(bool on) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  if (auto* const set = reinterpret_cast<MockSetHook*>(dlsym(driver, "mock_set_hook"))) {
    set(on ? &kHook : nullptr);
  }
}

size_t SizeOf(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(KernelRecord);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CopyRecord);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(SetRecord);
    default:
      return 0;
  }
}

}  // namespace

// ---------------------------------------------------------------------------- for tests

/// The next so many calls of `function` fail so.
EXPORT void mock_cupti_fail_next(const char* function, int result, uint64_t times) {
  const std::lock_guard lock(mutex);
  fail_function = function;
  fail_result = static_cast<CUptiResult>(result);
  fail_times = times;
}
EXPORT void mock_cupti_set_version(uint32_t to) { version = to; }
/// Whether another tool of the process has CUPTI.
EXPORT void mock_cupti_hold(int held) {
  const std::lock_guard lock(mutex);
  is_held = held != 0;
}
EXPORT uint64_t mock_cupti_calls() { return calls; }
EXPORT uint64_t mock_cupti_records() { return records; }
EXPORT uint64_t mock_cupti_finalized() { return finalized; }
EXPORT int mock_cupti_is_subscribed() { return subscriber.load() != nullptr; }

/// Launches kernels of `name` without a driver, each of a microsecond.
EXPORT void mock_cupti_launch(const char* name, uint64_t count) {
  const int64_t offset = ReadClock(CLOCK_REALTIME);
  for (uint64_t i = 0; i < count; ++i) {
    MockCudaCall call{.function = "cuLaunchKernel", .symbol = name, .stream = 7};
    Enter(call);
    Exit(call, 0);
    const uint64_t begin = static_cast<uint64_t>(offset) + 1000 * i;
    WriteKernel(call, begin, begin + 1000);
  }
}
/// Launches so many kernels while a stream is captured, so that they become a new graph, which it
/// returns.
EXPORT uint32_t mock_cupti_capture(const char* name, uint64_t kernels) {
  const uint32_t graph = next_graph++;
  for (uint64_t i = 0; i < kernels; ++i) {
    MockCudaCall call{.function = "cuLaunchKernel", .symbol = name, .stream = 7};
    Enter(call);
    TellOfGraph(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, graph, NodeOf(graph, i));
    Exit(call, 0);
  }
  return graph;
}
/// Makes a graph of so many kernels ready to be launched, and returns what does it.
EXPORT uint32_t mock_cupti_instantiate(uint32_t graph, uint64_t kernels) {
  const uint32_t made = next_graph++;
  for (uint64_t i = 0; i < kernels; ++i) {
    TellOfGraph(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, made, NodeOf(made, i));
    TellOfGraph(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, made, NodeOf(made, i), NodeOf(graph, i));
  }
  return made;
}
EXPORT void mock_cupti_destroy_graph(uint32_t graph) {
  TellOfGraph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, graph);
}
/// Launches a graph of so many kernels, each of a microsecond.
EXPORT void mock_cupti_launch_graph(const char* name, uint32_t graph, uint64_t kernels) {
  MockCudaCall call{.function = "cuGraphLaunch", .symbol = name, .stream = 7};
  Enter(call);
  Exit(call, 0);
  for (uint64_t i = 0; i < kernels; ++i) WriteKernel(call, 1000, 2000, NodeOf(graph, i));
}
/// A record alone: of a launch that nobody saw, or (with both times 0) without times.
EXPORT void mock_cupti_record(const char* name, uint32_t correlation, uint64_t begin,
                              uint64_t end) {
  WriteKernel({.function = "", .symbol = name, .correlation = correlation, .stream = 7}, begin,
              end);
}

// ---------------------------------------------------------------------------- CUPTI

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* to) {
  ++calls;
  *to = version;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  static const std::map<CUptiResult, const char*> kNames{
      {CUPTI_SUCCESS, "CUPTI_SUCCESS"},
      {CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
      {CUPTI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
      {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
      {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
       "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
  };
  const auto found = kNames.find(result);
  if (found == kNames.end()) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = found->second;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* handle,
                                           CUpti_CallbackFunc function, void* data) {
  BEGIN();
  if (is_held || subscriber.load() != nullptr) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  // It stays: a call that has begun may have it still.
  static std::deque<Subscriber>& all = *new std::deque<Subscriber>;
  const Subscriber* const made = &all.emplace_back(function, data);
  subscriber = made;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(const_cast<Subscriber*>(made));
  Look(true);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  BEGIN();
  const auto* const leaving = subscriber.load();
  if (leaving == nullptr || reinterpret_cast<const Subscriber*>(handle) != leaving) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  subscriber = nullptr;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle,
                                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  BEGIN();
  const bool is_of_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if ((!is_of_driver && domain != CUPTI_CB_DOMAIN_RESOURCE) || id >= kCallbackIds) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  (is_of_driver ? enabled : enabled_resources)[id] = enable != 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  BEGIN();
  kinds[kind] = true;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  BEGIN();
  kinds[kind] = false;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc on_request, CUpti_BuffersCallbackCompleteFunc on_complete) {
  BEGIN();
  request = on_request;
  complete = on_complete;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
  BEGIN();
  if (request == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  Complete();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* from, size_t valid,
                                                       CUpti_Activity** record) {
  ++calls;
  uint8_t* next = from;
  if (*record != nullptr) next = reinterpret_cast<uint8_t*>(*record) + SizeOf((*record)->kind);
  if (next >= from + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* const found = reinterpret_cast<CUpti_Activity*>(next);
  if (SizeOf(found->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) {
  BEGIN();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) {
  BEGIN();
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

// Not locked: these are called in callbacks.
EXPORT CUptiResult CUPTIAPI cuptiGetGraphId(CUgraph graph, uint32_t* number) {
  *number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(graph));
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* number) {
  *number = reinterpret_cast<uintptr_t>(node);
  return CUPTI_SUCCESS;
}

/// The mock's device that is said to have every context.
EXPORT void mock_cupti_set_device(uint32_t number) { device_of_contexts = number; }

EXPORT CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext, uint32_t* device) {
  *device = device_of_contexts;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* time) {
  BEGIN();
  *time = static_cast<uint64_t>(ReadClock(CLOCK_REALTIME));
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiFinalize() {
  BEGIN();
  ++finalized;
  subscriber = nullptr;
  Look(false);
  for (auto& each : enabled) each = false;
  for (auto& each : enabled_resources) each = false;
  for (auto& each : kinds) each = false;
  request = nullptr;
  complete = nullptr;
  buffer = nullptr;  // what is in it is lost, and it does not come back
  next_correlation = 1;
  return CUPTI_SUCCESS;
}
