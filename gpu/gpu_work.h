// SPDX-License-Identifier: Apache-2.0
//
// One thing that a device did, as CUPTI records it: from the decoder to the sums.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu/launch_moments.h"
#include "gpu/launch_path.h"

namespace pystrobe::gpu {

enum class WorkKind : uint8_t { kKernel, kCopy, kSet };
inline constexpr size_t kWorkKinds = 3;

/// What of a kernel's launch decides how many of its blocks a multiprocessor holds. All 0 of what
/// is no kernel.
struct BlockShape {
  std::array<uint32_t, 3> block{};    ///< threads
  std::array<uint32_t, 3> cluster{};  ///< blocks; all 0 where there are none
  uint32_t registers = 0;             ///< of a thread
  uint32_t static_shared = 0;         ///< bytes of a block
  uint32_t dynamic_shared = 0;        ///< bytes of a block
  uint32_t max_clusters = 0;          ///< that the device holds at once; 0: not told

  bool operator==(const BlockShape&) const = default;
};

/// The path that is none.
inline constexpr uint32_t kNotCaptured = 0;

/// The stream of work that is not known to be on one.
inline constexpr uint32_t kNoStream = ~uint32_t{0};

struct GpuWork {
  WorkKind kind = WorkKind::kKernel;
  const char* name = "";  ///< mangled; kept by its owner, so that equal addresses are equal names
  BlockShape shape;
  std::array<uint32_t, 3> grid{};  ///< blocks
  uint32_t device = 0;
  uint32_t stream = 0;  ///< as CUPTI numbers them, in all of the process
  uint64_t bytes = 0;   ///< of a copy or set
  LaunchOrigin origin;
  /// Of what a graph did: the path on which it was captured, or made otherwise; kNotCaptured where
  /// that was not seen. Then the origin is that of the graph's launch.
  std::optional<uint32_t> captured;
  std::optional<LaunchMoment> launch;  ///< where it was seen
  int64_t begin_ns = 0;                ///< CLOCK_MONOTONIC; both 0 where they are not known
  int64_t end_ns = 0;
};

}  // namespace pystrobe::gpu
