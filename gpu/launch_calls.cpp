// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_calls.h"

#include <cupti.h>

#include <algorithm>
#include <array>

namespace pystrobe::gpu {
namespace {

// The driver's alone: what the runtime is asked for comes through the driver too, but not the other
// way round. Of functions that were ever replaced (_v2) those of before are not here: no program
// for CUDA 12 calls them.
#define CBID(name) static_cast<uint32_t>(CUPTI_DRIVER_TRACE_CBID_##name)

constexpr uint32_t kKernels[] = {
    CBID(cuLaunch),
    CBID(cuLaunchGrid),
    CBID(cuLaunchGridAsync),
    CBID(cuLaunchKernel),
    CBID(cuLaunchKernel_ptsz),
    CBID(cuLaunchKernelEx),
    CBID(cuLaunchKernelEx_ptsz),
    CBID(cuLaunchCooperativeKernel),
    CBID(cuLaunchCooperativeKernel_ptsz),
    CBID(cuLaunchCooperativeKernelMultiDevice),
};

constexpr uint32_t kGraphs[] = {
    CBID(cuGraphLaunch),
    CBID(cuGraphLaunch_ptsz),
};

constexpr uint32_t kCopies[] = {
    CBID(cuMemcpyHtoD_v2),
    CBID(cuMemcpyHtoDAsync_v2),
    CBID(cuMemcpyDtoH_v2),
    CBID(cuMemcpyDtoHAsync_v2),
    CBID(cuMemcpyDtoD_v2),
    CBID(cuMemcpyDtoDAsync_v2),
    CBID(cuMemcpyAtoH_v2),
    CBID(cuMemcpyAtoHAsync_v2),
    CBID(cuMemcpyAtoD_v2),
    CBID(cuMemcpyDtoA_v2),
    CBID(cuMemcpyAtoA_v2),
    CBID(cuMemcpy2D_v2),
    CBID(cuMemcpy2DUnaligned_v2),
    CBID(cuMemcpy2DAsync_v2),
    CBID(cuMemcpy3D_v2),
    CBID(cuMemcpy3DAsync_v2),
    CBID(cuMemcpyHtoA_v2),
    CBID(cuMemcpyHtoAAsync_v2),
    CBID(cuMemcpy),
    CBID(cuMemcpyAsync),
    CBID(cuMemcpyPeer),
    CBID(cuMemcpyPeerAsync),
    CBID(cuMemcpy3DPeer),
    CBID(cuMemcpy3DPeerAsync),
    CBID(cuMemcpyHtoD_v2_ptds),
    CBID(cuMemcpyDtoH_v2_ptds),
    CBID(cuMemcpyDtoD_v2_ptds),
    CBID(cuMemcpyDtoA_v2_ptds),
    CBID(cuMemcpyAtoD_v2_ptds),
    CBID(cuMemcpyHtoA_v2_ptds),
    CBID(cuMemcpyAtoH_v2_ptds),
    CBID(cuMemcpyAtoA_v2_ptds),
    CBID(cuMemcpy2D_v2_ptds),
    CBID(cuMemcpy2DUnaligned_v2_ptds),
    CBID(cuMemcpy3D_v2_ptds),
    CBID(cuMemcpy_ptds),
    CBID(cuMemcpyPeer_ptds),
    CBID(cuMemcpy3DPeer_ptds),
    CBID(cuMemcpyAsync_ptsz),
    CBID(cuMemcpyHtoAAsync_v2_ptsz),
    CBID(cuMemcpyAtoHAsync_v2_ptsz),
    CBID(cuMemcpyHtoDAsync_v2_ptsz),
    CBID(cuMemcpyDtoHAsync_v2_ptsz),
    CBID(cuMemcpyDtoDAsync_v2_ptsz),
    CBID(cuMemcpy2DAsync_v2_ptsz),
    CBID(cuMemcpy3DAsync_v2_ptsz),
    CBID(cuMemcpyPeerAsync_ptsz),
    CBID(cuMemcpy3DPeerAsync_ptsz),
    // Later than CUDA 12.0, whose headers do not name them.
    776 /* cuMemcpyBatchAsync */,
    777 /* cuMemcpyBatchAsync_ptsz */,
    778 /* cuMemcpy3DBatchAsync */,
    779 /* cuMemcpy3DBatchAsync_ptsz */,
    796 /* cuMemcpyBatchAsync_v2 */,
    797 /* cuMemcpyBatchAsync_v2_ptsz */,
    798 /* cuMemcpy3DBatchAsync_v2 */,
    799 /* cuMemcpy3DBatchAsync_v2_ptsz */,
    837 /* cuMemcpyWithAttributesAsync */,
    838 /* cuMemcpyWithAttributesAsync_ptsz */,
    839 /* cuMemcpy3DWithAttributesAsync */,
    840 /* cuMemcpy3DWithAttributesAsync_ptsz */,
};

constexpr uint32_t kSets[] = {
    CBID(cuMemsetD8Async),        CBID(cuMemsetD16Async),        CBID(cuMemsetD32Async),
    CBID(cuMemsetD2D8Async),      CBID(cuMemsetD2D16Async),      CBID(cuMemsetD2D32Async),
    CBID(cuMemsetD8_v2),          CBID(cuMemsetD16_v2),          CBID(cuMemsetD32_v2),
    CBID(cuMemsetD2D8_v2),        CBID(cuMemsetD2D16_v2),        CBID(cuMemsetD2D32_v2),
    CBID(cuMemsetD8_v2_ptds),     CBID(cuMemsetD16_v2_ptds),     CBID(cuMemsetD32_v2_ptds),
    CBID(cuMemsetD2D8_v2_ptds),   CBID(cuMemsetD2D16_v2_ptds),   CBID(cuMemsetD2D32_v2_ptds),
    CBID(cuMemsetD8Async_ptsz),   CBID(cuMemsetD16Async_ptsz),   CBID(cuMemsetD32Async_ptsz),
    CBID(cuMemsetD2D8Async_ptsz), CBID(cuMemsetD2D16Async_ptsz), CBID(cuMemsetD2D32Async_ptsz),
};

// Copies that are not to be waited for, with memory that is not pinned, wait inside the driver all
// the same: nothing tells that of them.
constexpr uint32_t kWaits[] = {
    CBID(cuCtxSynchronize),
    800 /* cuCtxSynchronize_v2, of CUDA 13 */,
    CBID(cuStreamSynchronize),
    CBID(cuStreamSynchronize_ptsz),
    CBID(cuEventSynchronize),
    CBID(cuMemcpyDtoH_v2),
    CBID(cuMemcpyDtoH_v2_ptds),
    CBID(cuMemcpyAtoH_v2),
    CBID(cuMemcpyAtoH_v2_ptds),
    CBID(cuMemcpyHtoD_v2),
    CBID(cuMemcpyHtoD_v2_ptds),
    CBID(cuMemcpy),
    CBID(cuMemcpy_ptds),
    CBID(cuMemcpy2D_v2),
    CBID(cuMemcpy2D_v2_ptds),
    CBID(cuMemcpy2DUnaligned_v2),
    CBID(cuMemcpy2DUnaligned_v2_ptds),
    CBID(cuMemcpy3D_v2),
    CBID(cuMemcpy3D_v2_ptds),
};

constexpr uint32_t kCaptures[] = {
    CBID(cuStreamBeginCapture),
    CBID(cuStreamBeginCapture_ptsz),
    CBID(cuStreamBeginCapture_v2),
    CBID(cuStreamBeginCapture_v2_ptsz),
    720 /* cuStreamBeginCaptureToGraph, of CUDA 12.3 */,
    721 /* cuStreamBeginCaptureToGraph_ptsz */,
    846 /* cuStreamBeginRecaptureToGraph, of CUDA 13 */,
    847 /* cuStreamBeginRecaptureToGraph_ptsz */,
    CBID(cuStreamEndCapture),
    CBID(cuStreamEndCapture_ptsz),
};

#undef CBID

constexpr size_t kIds = 1024;

// 0: not a launch; else the kind + 1.
constexpr std::array<uint8_t, kIds> kKindOf = [] {
  std::array<uint8_t, kIds> kinds{};
  const auto mark = [&](std::span<const uint32_t> ids, LaunchKind kind) {
    for (const uint32_t id : ids) kinds[id] = static_cast<uint8_t>(static_cast<uint8_t>(kind) + 1);
  };
  mark(kKernels, LaunchKind::kKernel);
  mark(kGraphs, LaunchKind::kGraph);
  mark(kCopies, LaunchKind::kCopy);
  mark(kSets, LaunchKind::kSet);
  return kinds;
}();

constexpr std::array kIdsOfLaunches = [] {
  std::array<uint32_t, kIds - std::ranges::count(kKindOf, 0)> ids{};
  size_t size = 0;
  for (uint32_t id = 0; id < kIds; ++id) {
    if (kKindOf[id] != 0) ids[size++] = id;
  }
  return ids;
}();

constexpr std::array<bool, kIds> kIsWait = [] {
  std::array<bool, kIds> is_wait{};
  for (const uint32_t id : kWaits) is_wait[id] = true;
  return is_wait;
}();

}  // namespace

std::span<const uint32_t> LaunchCallIds() { return kIdsOfLaunches; }

std::optional<LaunchKind> KindOfLaunchCall(uint32_t id) {
  if (id >= kIds || kKindOf[id] == 0) return std::nullopt;
  return static_cast<LaunchKind>(kKindOf[id] - 1);
}

std::span<const uint32_t> WaitCallIds() { return kWaits; }

bool IsWaitCall(uint32_t id) { return id < kIds && kIsWait[id]; }

std::span<const uint32_t> CaptureCallIds() { return kCaptures; }

std::optional<CaptureEdge> CaptureEdgeOf(uint32_t id) {
  const auto* const found = std::ranges::find(kCaptures, id);
  if (found == std::end(kCaptures)) return std::nullopt;
  const bool ends = id == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture ||
                    id == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz;
  return ends ? CaptureEdge::kEnd : CaptureEdge::kBegin;
}

}  // namespace pystrobe::gpu
