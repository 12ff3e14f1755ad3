// SPDX-License-Identifier: Apache-2.0
//
// Kernels. One called sleep_N takes N nanoseconds.
#include <dlfcn.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "tests/mock_cuda/stream.h"

struct CUmod_st {};
struct CUfunc_st {
  std::string name;
  int64_t nanoseconds;
};

namespace mock_cuda {
namespace {

constexpr int64_t kEmptyKernel = 600;  // nanoseconds
constexpr size_t kRoom = 1020;         // launches that a stream takes before the launcher waits
constexpr int64_t kCyclesEachNanosecond = kClockKhz / 1'000'000;

double clock_share = 1;

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

/// The clock of the multiprocessors from now on, of the highest.
EXPORT void mock_set_clock(double share) { clock_share = share; }

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

/// Launches kernels from a thread as PyTorch's autograd has them: the interpreter knows it, but it
/// runs no Python, and has let go of the GIL. Returns when it has ended.
EXPORT void mock_launch_without_frames(CUfunction kernel, uint64_t count) {
  std::thread([&] {
    const auto python = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
    const auto state = reinterpret_cast<int (*)()>(python("PyGILState_Ensure"))();
    void* const saved = reinterpret_cast<void* (*)()>(python("PyEval_SaveThread"))();
    CUcontext context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (uint64_t i = 0; i < count; ++i) {
      cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    }
    cuCtxSynchronize();
    reinterpret_cast<void (*)(void*)>(python("PyEval_RestoreThread"))(saved);
    reinterpret_cast<void (*)(int)>(python("PyGILState_Release"))(state);
  }).join();
}

}  // namespace mock_cuda
