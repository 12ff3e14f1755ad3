// SPDX-License-Identifier: Apache-2.0
//
// libcuda.so.1 for machines without a GPU: as much of the driver as gpu/ and its tests call.
//
// Each stream has a queue. What is on it takes device time that is computed, not slept: an
// operation begins when the one before it has ended and it has been put there, by CLOCK_MONOTONIC;
// who waits for it waits until then. A kernel called sleep_N takes N nanoseconds.
//
// MOCK_CUDA_DEVICES is how many devices there are (1). mock_* below are for tests.
#include <cuda.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/mock_cuda/hook.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct CUctx_st {
  CUdevice device;
  unsigned long long id;
  bool is_gone = false;
};
struct CUmod_st {};
struct CUfunc_st {
  std::string name;
  int64_t nanoseconds;
};
struct CUevent_st {
  CUctx_st* context;
  bool is_recorded = false;
  bool is_pending = false;
  int64_t time = 0;
};

namespace {

constexpr int64_t kGap = 700;          // between two operations of a stream
constexpr int64_t kEmptyKernel = 600;  // nanoseconds
constexpr int64_t kBytesEachNanosecond = 3000;
constexpr size_t kRoom = 1020;  // launches that a stream takes before the launcher waits
constexpr int64_t kClockKhz = 1'000'000;
constexpr int64_t kCyclesEachNanosecond = kClockKhz / 1'000'000;

struct Operation {
  int64_t put = 0;  // host time
  int64_t duration = 0;
  bool waits = false;  // for something else than the operation before it
  std::function<bool()> is_due = [] { return true; };
  std::function<void(int64_t begin)> run = [](int64_t) {};
};

}  // namespace

struct CUstream_st {
  CUctx_st* context;
  uint32_t id;
  std::deque<Operation> queue{};
  int64_t free_at = 0;
  bool is_captured = false;
};

namespace {

std::recursive_mutex mutex;
pid_t initialized_in = 0;
std::vector<CUctx_st*> primary;
std::map<CUctx_st*, CUstream_st*> default_streams;
std::set<CUstream_st*> streams;
std::set<CUevent_st*> events;
unsigned long long next_id = 1;
uint32_t next_stream = 7;  // as CUPTI numbers them: the default stream is the first
std::atomic<const MockCudaHook*> hook{nullptr};
double clock_share = 1;
std::string fail_function;
CUresult fail_result = CUDA_SUCCESS;
std::atomic<uint64_t> retains{0}, live_events{0}, live_allocations{0};
thread_local std::vector<CUctx_st*> stack;

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void Nap() {
  constexpr timespec kNap{0, 20'000};
  nanosleep(&kNap, nullptr);
}

int DeviceCount() {
  const char* const text = std::getenv("MOCK_CUDA_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

// What any call returns first.
CUresult Begin(const char* function) {
  if (initialized_in != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (fail_function != function) return CUDA_SUCCESS;
  fail_function.clear();
  return fail_result;
}

#define BEGIN()                      \
  const std::lock_guard lock(mutex); \
  if (const CUresult begun = Begin(__func__); begun != CUDA_SUCCESS) return begun

// They stay: who has one of a stream that is gone may ask for it.
CUstream_st* MakeStream(CUctx_st* context) {
  static std::deque<CUstream_st>& all = *new std::deque<CUstream_st>;
  return &all.emplace_back(context, next_stream++);
}

CUctx_st* Current() { return stack.empty() ? nullptr : stack.back(); }

CUstream_st* Resolve(CUstream stream) {
  if (stream != nullptr) return streams.contains(stream) ? stream : nullptr;
  CUctx_st* const context = Current();
  if (context == nullptr) return nullptr;
  auto& own = default_streams[context];
  if (own == nullptr) own = MakeStream(context);
  return own;
}

// Does what can be done by now.
void Advance(CUstream_st& stream) {
  while (!stream.queue.empty() && stream.queue.front().is_due()) {
    Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    const int64_t put = operation.waits ? Now() : operation.put;
    const int64_t begin = std::max(stream.free_at + kGap, put);
    operation.run(begin);
    stream.free_at = begin + operation.duration;
  }
}

CUresult Put(CUstream handle, Operation operation) {
  CUstream_st* const stream = Resolve(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->context->is_gone) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  operation.put = Now();
  stream->queue.push_back(std::move(operation));
  Advance(*stream);
  return CUDA_SUCCESS;
}

// What is told to who looks at one call.
class Seen {
 public:
  explicit Seen(MockCudaCall call) : hook_(hook), call_(call) {
    if (hook_ != nullptr) hook_->enter(call_);
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  ~Seen() {
    if (hook_ != nullptr) hook_->exit(call_, result_);
  }
  CUresult Put(CUstream stream, Operation operation) {
    if (hook_ != nullptr) {
      if (CUstream_st* const own = Resolve(stream)) call_.stream = own->id;
      operation.run = [run = std::move(operation.run), duration = operation.duration, hook = hook_,
                       call = call_](int64_t begin) {
        run(begin);
        hook->done(call, begin, begin + duration);
      };
    }
    return ::Put(stream, std::move(operation));
  }
  CUresult Exit(CUresult result) { return result_ = result; }

 private:
  const MockCudaHook* hook_;
  MockCudaCall call_;
  CUresult result_ = CUDA_ERROR_UNKNOWN;
};

bool IsDone(CUstream_st& stream) {
  Advance(stream);
  return stream.queue.empty() && stream.free_at <= Now();
}

// Without the lock, so that another thread may be what it waits for.
template <typename Condition>
void WaitUntil(Condition condition) {
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (condition()) return;
    }
    Nap();
  }
}

void AdvanceAll() {
  for (CUstream_st* stream : streams) Advance(*stream);
  for (const auto& [context, stream] : default_streams) Advance(*stream);
}

bool IsReached(const CUevent_st& event) {
  AdvanceAll();
  return !event.is_recorded || (!event.is_pending && event.time <= Now());
}

}  // namespace

// ---------------------------------------------------------------------------- for tests

/// The next call of `function`, as <cuda.h> calls it after its macros, fails so.
EXPORT void mock_fail_next(const char* function, int result) {
  const std::lock_guard lock(mutex);
  fail_function = function;
  fail_result = static_cast<CUresult>(result);
}
EXPORT void mock_capture(CUstream_st* stream, int on) { stream->is_captured = on != 0; }
/// The clock of the multiprocessors from now on, of the highest.
EXPORT void mock_set_clock(double share) { clock_share = share; }
EXPORT uint64_t mock_retains() { return retains; }
EXPORT uint64_t mock_events() { return live_events; }
EXPORT uint64_t mock_allocations() { return live_allocations; }
EXPORT void mock_set_hook(const MockCudaHook* to) { hook = to; }
EXPORT int mock_is_initialized() { return initialized_in == getpid(); }

// ---------------------------------------------------------------------------- the driver

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
  *context = Current();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  BEGIN();
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = Current()->device;
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

EXPORT CUresult CUDAAPI cuCtxSynchronize() {
  {
    BEGIN();
    if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  }
  WaitUntil([context = Current()] {
    bool done = true;
    for (CUstream_st* stream : streams) done &= stream->context != context || IsDone(*stream);
    const auto own = default_streams.find(context);
    return done && (own == default_streams.end() || IsDone(*own->second));
  });
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  BEGIN();
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = MakeStream(Current());
  streams.insert(*stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  BEGIN();
  return streams.erase(stream) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *context = own->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  CUstream_st* own = nullptr;
  {
    BEGIN();
    own = Resolve(stream);
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  WaitUntil([own] { return IsDone(*own); });
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = own->is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

// The moment at which the word has changed is that at which it is seen.
EXPORT CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                            unsigned) {
  BEGIN();
  auto* const word = reinterpret_cast<uint32_t*>(address);
  Operation wait;
  wait.waits = true;
  wait.is_due = [word, value] {
    return static_cast<int32_t>(std::atomic_ref(*word).load() - value) >= 0;
  };
  return Put(stream, std::move(wait));
}

EXPORT CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  BEGIN();
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st{Current()};
  events.insert(*event);
  ++live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event) {
  BEGIN();
  if (events.erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  --live_events;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  BEGIN();
  CUstream_st* const own = Resolve(stream);
  if (own == nullptr || !events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (own->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  event->is_recorded = event->is_pending = true;
  Operation record;
  record.run = [event](int64_t begin) {
    event->time = begin;
    event->is_pending = false;
  };
  return Put(stream, std::move(record));
}

EXPORT CUresult CUDAAPI cuEventQuery(CUevent event) {
  BEGIN();
  if (!events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  return IsReached(*event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  {
    BEGIN();
    if (!events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  }
  WaitUntil([event] { return IsReached(*event); });
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  BEGIN();
  if (!begin->is_recorded || !end->is_recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!IsReached(*begin) || !IsReached(*end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(static_cast<double>(end->time - begin->time) / 1e6);
  return CUDA_SUCCESS;
}

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

EXPORT CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void*) {
  BEGIN();
  *module = new CUmod_st;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  BEGIN();
  delete module;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  BEGIN();
  // They stay: CUPTI keeps their names.
  static std::deque<CUfunc_st>& all = *new std::deque<CUfunc_st>;
  const std::string text = name;
  const bool sleeps = text.starts_with("sleep_");
  *function = &all.emplace_back(text, sleeps ? std::atoll(name + 6) : kEmptyKernel);
  return CUDA_SUCCESS;
}

namespace {

CUresult Launch(Seen& seen, CUfunction function, CUstream stream, void** arguments) {
  CUstream_st* own = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (const CUresult begun = Begin("cuLaunchKernel"); begun != CUDA_SUCCESS) return begun;
    own = Resolve(stream);
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  }
  WaitUntil([own] {
    Advance(*own);
    return own->queue.size() < kRoom;
  });
  const std::lock_guard lock(mutex);
  Operation kernel;
  kernel.duration = function->nanoseconds;
  if (function->name == "pystrobe_note") {
    auto* const to = *static_cast<uint64_t**>(arguments[0]);
    kernel.run = [to](int64_t begin) {
      static int64_t last = 0;
      static double cycles = 0;
      cycles += static_cast<double>(begin - last) * clock_share * kCyclesEachNanosecond;
      last = begin;
      to[0] = static_cast<uint64_t>(cycles);
      to[1] = static_cast<uint64_t>(begin);
    };
  }
  return seen.Put(stream, std::move(kernel));
}

}  // namespace

EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared, CUstream stream,
                                       void** arguments, void**) {
  Seen seen({.function = "cuLaunchKernel",
             .symbol = function->name.c_str(),
             .grid = {grid_x, grid_y, grid_z},
             .block = {block_x, block_y, block_z},
             .dynamic_shared = shared});
  return seen.Exit(Launch(seen, function, stream, arguments));
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
