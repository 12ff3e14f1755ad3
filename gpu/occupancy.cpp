// SPDX-License-Identifier: Apache-2.0
#include "gpu/occupancy.h"

#include <cuda_occupancy.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "gpu/driver_api.h"

namespace pystrobe::gpu {
namespace {

constexpr uint64_t kBlocksEach = 4;
constexpr double kLowOccupancy = 0.5;
constexpr double kEmptyTail = 0.8;

struct Attribute {
  int DeviceLimits::* limit;
  CUdevice_attribute attribute;
};
constexpr Attribute kAttributes[] = {
    {&DeviceLimits::compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&DeviceLimits::compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&DeviceLimits::multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&DeviceLimits::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&DeviceLimits::threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&DeviceLimits::threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&DeviceLimits::registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&DeviceLimits::registers_per_multiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&DeviceLimits::shared_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&DeviceLimits::shared_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&DeviceLimits::shared_per_multiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&DeviceLimits::shared_reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
};

uint64_t Product(const std::array<uint32_t, 3>& sizes) {
  return uint64_t{sizes[0]} * sizes[1] * sizes[2];
}

cudaOccDeviceProp PropertiesOf(const DeviceLimits& device) {
  cudaOccDeviceProp properties;
  properties.computeMajor = device.compute_major;
  properties.computeMinor = device.compute_minor;
  properties.maxThreadsPerBlock = device.threads_per_block;
  properties.maxThreadsPerMultiprocessor = device.threads_per_multiprocessor;
  properties.regsPerBlock = device.registers_per_block;
  properties.regsPerMultiprocessor = device.registers_per_multiprocessor;
  properties.warpSize = device.warp_size;
  properties.sharedMemPerBlock = static_cast<size_t>(device.shared_per_block);
  properties.sharedMemPerMultiprocessor = static_cast<size_t>(device.shared_per_multiprocessor);
  properties.numSms = device.multiprocessors;
  properties.sharedMemPerBlockOptin = static_cast<size_t>(device.shared_per_block_optin);
  properties.reservedSharedMemPerBlock = static_cast<size_t>(device.shared_reserved);
  return properties;
}

// With FUNC_SHMEM_LIMIT_DEFAULT nothing of more than 48 KB would fit.
cudaOccFuncAttributes AttributesOf(const DeviceLimits& device, const BlockShape& shape) {
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = INT_MAX;
  attributes.numRegs = static_cast<int>(shape.registers);
  attributes.sharedSizeBytes = shape.static_shared;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes =
      static_cast<size_t>(device.shared_per_block_optin) - shape.static_shared;
  attributes.numBlockBarriers = 1;
  return attributes;
}

std::vector<OccupancyLimit> LimitsOf(unsigned factors) {
  std::vector<OccupancyLimit> limits;
  const auto add = [&](unsigned factor, OccupancyLimit limit) {
    if ((factors & factor) != 0) limits.push_back(limit);
  };
  add(OCC_LIMIT_WARPS, OccupancyLimit::kWarps);
  add(OCC_LIMIT_REGISTERS, OccupancyLimit::kRegisters);
  add(OCC_LIMIT_SHARED_MEMORY, OccupancyLimit::kSharedMemory);
  add(OCC_LIMIT_BLOCKS, OccupancyLimit::kBlocks);
  add(OCC_LIMIT_BARRIERS, OccupancyLimit::kBarriers);
  return limits;
}

std::string WordsOf(OccupancyLimit limit, const BlockShape& shape) {
  switch (limit) {
    case OccupancyLimit::kWarps:
      return fmt::format("the {} threads of a block", Product(shape.block));
    case OccupancyLimit::kRegisters:
      return fmt::format("{} registers a thread", shape.registers);
    case OccupancyLimit::kSharedMemory:
      return fmt::format("{:.1f} KB of shared memory a block",
                         (shape.static_shared + shape.dynamic_shared) / 1024.0);
    case OccupancyLimit::kBlocks:
      return fmt::format("the number of blocks, of {} threads each", Product(shape.block));
    case OccupancyLimit::kBarriers:
      return "barriers";
    case OccupancyLimit::kClusters:
      return fmt::format("clusters of {} blocks, which some multiprocessors have no neighbours for",
                         Product(shape.cluster));
  }
  return {};
}

// That the device holds at once.
double BlocksAtOnce(const DeviceLimits& device, const BlockShape& shape, int blocks_each) {
  const double each = static_cast<double>(blocks_each) * device.multiprocessors;
  if (shape.max_clusters == 0) return each;
  return std::min(each, static_cast<double>(shape.max_clusters * Product(shape.cluster)));
}

}  // namespace

Result<DeviceLimits> ReadDeviceLimits(int index) {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  CUdevice device = 0;
  auto done = (*cuda)->Check((*cuda)->cuDeviceGet(&device, index), "looking for the device");
  DeviceLimits limits;
  for (const auto& [limit, attribute] : kAttributes) {
    if (!done) break;
    done = (*cuda)->Check((*cuda)->cuDeviceGetAttribute(&(limits.*limit), attribute, device),
                          "reading an attribute");
  }
  if (!done) return Wrap(done.error(), "device {}", index);
  return limits;
}

std::string_view ToString(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::kWarps:
      return "threads";
    case OccupancyLimit::kRegisters:
      return "registers";
    case OccupancyLimit::kSharedMemory:
      return "shared memory";
    case OccupancyLimit::kBlocks:
      return "blocks";
    case OccupancyLimit::kBarriers:
      return "barriers";
    case OccupancyLimit::kClusters:
      return "clusters";
  }
  return {};
}

Result<Occupancy> OccupancyOf(const DeviceLimits& device, const BlockShape& shape,
                              const std::array<uint32_t, 3>& grid) {
  const uint64_t threads = Product(shape.block);
  const cudaOccDeviceProp properties = PropertiesOf(device);
  const cudaOccFuncAttributes attributes = AttributesOf(device, shape);
  const cudaOccDeviceState state;
  cudaOccResult found{};
  const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
      &found, &properties, &attributes, &state, static_cast<int>(threads), shape.dynamic_shared);
  if (error != CUDA_OCC_SUCCESS) {
    return Fail(ErrorCode::kGpu, "no occupancy of {} threads on a device of capability {}.{}: {}",
                threads, device.compute_major, device.compute_minor,
                error == CUDA_OCC_ERROR_UNKNOWN_DEVICE ? "it is not known here" : "not valid");
  }
  const int blocks = found.activeBlocksPerMultiprocessor;
  if (blocks <= 0) {
    return Fail(ErrorCode::kGpu, "{} threads of {} registers with {} bytes shared fit nowhere",
                threads, shape.registers, shape.static_shared + shape.dynamic_shared);
  }
  const auto warp = static_cast<uint64_t>(device.warp_size);
  const auto warps = static_cast<double>((threads + warp - 1) / warp);
  const int most_warps = device.threads_per_multiprocessor / device.warp_size;
  const double each = static_cast<double>(blocks) * device.multiprocessors;
  const double at_once = BlocksAtOnce(device, shape, blocks);
  Occupancy occupancy{
      .blocks_per_multiprocessor = blocks,
      .theoretical = warps * at_once / (static_cast<double>(most_warps) * device.multiprocessors),
      .limits = LimitsOf(found.limitingFactors)};
  if (at_once < each) occupancy.limits.push_back(OccupancyLimit::kClusters);
  occupancy.waves = static_cast<double>(Product(grid)) / at_once;
  const double whole = std::ceil(occupancy.waves);
  occupancy.tail_efficiency = whole > 0 ? occupancy.waves / whole : 0;
  return occupancy;
}

std::vector<std::string> OccupancyAdvice(const DeviceLimits& device, const BlockShape& shape,
                                         const std::array<uint32_t, 3>& grid,
                                         const Occupancy& occupancy) {
  std::vector<std::string> advice;
  const uint64_t blocks = Product(grid);
  const auto multiprocessors = static_cast<uint64_t>(device.multiprocessors);
  if (blocks < kBlocksEach * multiprocessors) {
    advice.push_back(fmt::format(
        "{} {} on {} multiprocessors, fewer than {} each: unless it is meant to stay on them, "
        "more work in a launch or smaller blocks fill the device better",
        blocks, blocks == 1 ? "block" : "blocks", multiprocessors, kBlocksEach));
  }
  if (occupancy.waves > 1 && occupancy.tail_efficiency < kEmptyTail) {
    advice.push_back(fmt::format(
        "{:.2f} waves: the last leaves {:.0f} % of the device's time unused; a grid of whole waves "
        "({} blocks each), or blocks of another size, would not",
        occupancy.waves, 100 * (1 - occupancy.tail_efficiency),
        std::llround(static_cast<double>(blocks) / occupancy.waves)));
  }
  if (occupancy.theoretical < kLowOccupancy) {
    std::string reasons;
    for (const OccupancyLimit limit : occupancy.limits) {
      reasons += (reasons.empty() ? "" : " and ") + WordsOf(limit, shape);
    }
    advice.push_back(fmt::format(
        "{:.0f} % of the warps fit, for {}: with less of it more would, and hide how long memory "
        "takes; what keeps tensor cores busy needs no more",
        100 * occupancy.theoretical, reasons));
  }
  return advice;
}

}  // namespace pystrobe::gpu
