// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include "gpu/driver_api.h"

namespace pystrobe::gpu {
namespace {

Result<Device> Describe(const DriverApi& cuda, int index) {
  CUdevice device = 0;
  auto done = cuda.Check(cuda.cuDeviceGet(&device, index), "looking for the device");
  char name[256] = "";
  size_t memory = 0;
  if (done) done = cuda.Check(cuda.cuDeviceGetName(name, sizeof name, device), "reading its name");
  if (done) done = cuda.Check(cuda.cuDeviceTotalMem(&memory, device), "reading its memory's size");
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    if (done) {
      done = cuda.Check(cuda.cuDeviceGetAttribute(&value, which, device), "reading an attribute");
    }
    return value;
  };
  Device found{.index = index, .name = name, .memory_bytes = memory};
  found.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  found.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  found.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  found.l2_bytes = static_cast<uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  found.clock_hz = 1e3 * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  found.memory_clock_hz = 1e3 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  found.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  if (!done) return Wrap(done.error(), "device {}", index);
  return found;
}

}  // namespace

Result<int> DriverVersion() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  int version = 0;
  if (auto done = (*cuda)->Check((*cuda)->cuDriverGetVersion(&version), "asking for its version");
      !done) {
    return Wrap(done.error(), "the CUDA driver");
  }
  return version;
}

Result<bool> IsInitialized() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  int count = 0;
  return (*cuda)->cuDeviceGetCount(&count) == CUDA_SUCCESS;
}

Result<std::vector<Device>> ListDevices() {
  const auto cuda = DriverApi::Load();
  if (!cuda) return std::unexpected(cuda.error());
  int count = 0;
  auto done = (*cuda)->Check((*cuda)->cuInit(0), "initialising the CUDA driver");
  if (done) done = (*cuda)->Check((*cuda)->cuDeviceGetCount(&count), "counting the devices");
  if (!done) return std::unexpected(done.error());
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    auto device = Describe(**cuda, i);
    if (!device) return std::unexpected(device.error());
    devices.push_back(*std::move(device));
  }
  return devices;
}

}  // namespace pystrobe::gpu
