// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe_kernels.h"

#include <cstring>
#include <numeric>

namespace pystrobe::gpu {
namespace {

// PTX ISA 7.0 (CUDA 11.0). Clocks of different multiprocessors have nothing to do with each other,
// so it is always number 0 that notes its own: %clock64 counts its cycles, %globaltimer is
// nanoseconds.
constexpr char kPtx[] = R"(
.version 7.0
.target sm_60
.address_size 64

.visible .entry pystrobe_empty() { ret; }

.visible .entry pystrobe_note(.param .u64 clocks)
{
  .reg .pred %other;
  .reg .u32 %sm;
  .reg .u64 %to, %cycles, %time;
  mov.u32 %sm, %smid;
  setp.ne.u32 %other, %sm, 0;
  @%other bra DONE;
  ld.param.u64 %to, [clocks];
  mov.u64 %cycles, %clock64;
  mov.u64 %time, %globaltimer;
  st.u64 [%to], %cycles;
  st.u64 [%to+8], %time;
DONE:
  ret;
}
)";

// So that one block is on each multiprocessor, whatever the order in which they are filled.
constexpr int kBlocksEach = 4;

// Between two notes, for a clock that is right to some 5 %.
constexpr uint64_t kFewestSteps = 20;

}  // namespace

Result<std::unique_ptr<ProbeKernels>> ProbeKernels::Make(const DriverApi& cuda,
                                                         int multiprocessors) {
  std::unique_ptr<ProbeKernels> made(new ProbeKernels(cuda, multiprocessors));
  auto done = cuda.Check(cuda.cuModuleLoadData(&made->module_, kPtx), "compiling our kernels");
  if (done) {
    done = cuda.Check(cuda.cuModuleGetFunction(&made->empty_, made->module_, "pystrobe_empty"),
                      "finding our kernel");
  }
  if (done) {
    done = cuda.Check(cuda.cuModuleGetFunction(&made->note_, made->module_, "pystrobe_note"),
                      "finding our kernel");
  }
  void* notes = nullptr;
  if (done) {
    done = cuda.Check(cuda.cuMemHostAlloc(&notes, 2 * sizeof(Clocks), CU_MEMHOSTALLOC_DEVICEMAP),
                      "taking memory that the device writes");
  }
  if (!done) return std::unexpected(done.error());
  made->notes_ = static_cast<Clocks*>(notes);
  std::memset(notes, 0, 2 * sizeof(Clocks));
  done = cuda.Check(cuda.cuMemHostGetDevicePointer(&made->address_, notes, 0),
                    "asking where the device sees it");
  if (!done) return std::unexpected(done.error());
  return made;
}

ProbeKernels::~ProbeKernels() {
  if (notes_ != nullptr) cuda_.cuMemFreeHost(notes_);
  if (module_ != nullptr) cuda_.cuModuleUnload(module_);
}

Result<void> ProbeKernels::LaunchEmpty(Stream stream) {
  return cuda_.Check(cuda_.cuLaunchKernel(empty_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                     "launching our kernel");
}

Result<void> ProbeKernels::LaunchNote(Stream stream, Note note) {
  CUdeviceptr to = address_ + static_cast<CUdeviceptr>(note) * sizeof(Clocks);
  void* arguments[] = {&to};
  const auto blocks = static_cast<unsigned>(multiprocessors_ * kBlocksEach);
  return cuda_.Check(
      cuda_.cuLaunchKernel(note_, blocks, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
      "launching our kernel");
}

std::optional<double> ProbeKernels::ClockBetweenNotes() {
  Clocks clocks[2];
  std::memcpy(clocks, notes_, sizeof clocks);
  std::memset(notes_, 0, sizeof clocks);
  const auto& [first, second] = clocks;
  if (first.nanoseconds == 0 || second.nanoseconds <= first.nanoseconds) return std::nullopt;
  step_ns_ = std::gcd(std::gcd(step_ns_, first.nanoseconds), second.nanoseconds);
  const uint64_t took_ns = second.nanoseconds - first.nanoseconds;
  if (took_ns < kFewestSteps * step_ns_) return std::nullopt;
  return static_cast<double>(second.cycles - first.cycles) * 1e9 / static_cast<double>(took_ns);
}

}  // namespace pystrobe::gpu
