// SPDX-License-Identifier: Apache-2.0
//
// The devices that the CUDA driver shows this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Of one device, by cuDeviceGetAttribute. Figures are the device's greatest, not those of now.
struct Device {
  int index = 0;  ///< as CUDA_VISIBLE_DEVICES leaves them
  std::string name;
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
  uint64_t l2_bytes = 0;
  double clock_hz = 0;         ///< of the multiprocessors
  double memory_clock_hz = 0;  ///< 0 where the driver does not tell
  int memory_bus_bits = 0;
};

/// What the CUDA driver is for, as 1000 * major + 10 * minor. Initialises nothing. [any thread]
Result<int> DriverVersion();

/// Whether the driver is initialised in this process (cuInit). Does not do it. [any thread]
Result<bool> IsInitialized();

/// Initialises the driver (cuInit) where nobody has; makes no context. [any thread]
Result<std::vector<Device>> ListDevices();

}  // namespace pystrobe::gpu
