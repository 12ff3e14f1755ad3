// SPDX-License-Identifier: Apache-2.0
//
// How much of a device a kernel can fill, worked out from its record: what fits, not what was
// there. What was takes the device's counters. [any thread]
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu_work.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// What a device's multiprocessors hold. Bytes, registers of 32 bits, threads.
struct DeviceLimits {
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int threads_per_block = 0, threads_per_multiprocessor = 0;
  int registers_per_block = 0, registers_per_multiprocessor = 0;
  int shared_per_block = 0;        ///< without asking for more
  int shared_per_block_optin = 0;  ///< at most
  int shared_per_multiprocessor = 0;
  int shared_reserved = 0;  ///< of each block, by the driver
};

/// Of the device that cuDeviceGet has at `index`. Fails where the driver is not initialised.
Result<DeviceLimits> ReadDeviceLimits(int index);

/// What there are no more blocks for.
enum class OccupancyLimit { kWarps, kRegisters, kSharedMemory, kBlocks, kBarriers, kClusters };
std::string_view ToString(OccupancyLimit limit);

struct Occupancy {
  int blocks_per_multiprocessor = 0;   ///< of one that has all neighbours that its clusters need
  double theoretical = 0;              ///< warps that fit, of those that the device holds
  std::vector<OccupancyLimit> limits;  ///< all that end at the same number of blocks
  double waves = 0;                    ///< times that the device is filled
  /// Share of the places that have work if all blocks take equally long: what is left out is the
  /// last wave's. 1 where the last is full.
  double tail_efficiency = 0;
};

/// By the calculator of <cuda_occupancy.h>, which does what cuOccupancyMaxActiveBlocksPer-
/// Multiprocessor does, with shared memory up to what a kernel may ask for, as its launch must have
/// done. Of clusters the device has told how many it holds: a multiprocessor without neighbours for
/// one stays empty, which is in `theoretical`. Fails where the device is later than the header, or
/// nothing fits. A microsecond.
Result<Occupancy> OccupancyOf(const DeviceLimits& device, const BlockShape& shape,
                              const std::array<uint32_t, 3>& grid);

/// Plain words on what may be worth a change; none where all is well.
std::vector<std::string> OccupancyAdvice(const DeviceLimits& device, const BlockShape& shape,
                                         const std::array<uint32_t, 3>& grid,
                                         const Occupancy& occupancy);

}  // namespace pystrobe::gpu
