// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernel_table.h"

#include <algorithm>
#include <functional>

#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

uint64_t HashOf(uint64_t seed, const BlockShape& shape) {
  const auto mix = [&](uint64_t high, uint64_t low) { seed = MixBits(seed ^ (high << 32 | low)); };
  mix(shape.block[0], shape.block[1]);
  mix(shape.block[2], shape.registers);
  mix(shape.static_shared, shape.dynamic_shared);
  // Next to none have clusters.
  if (shape.cluster[0] != 0) {
    mix(shape.cluster[0], shape.cluster[1]);
    mix(shape.cluster[2], shape.max_clusters);
  }
  return seed;
}

uint64_t HashOf(const char* name, const BlockShape& shape) {
  return HashOf(MixBits(reinterpret_cast<uintptr_t>(name)), shape);
}

}  // namespace

KernelTable::KernelTable(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {
  kernels_.push_back({"(other kernels)", {}, 0});
}

KernelId KernelTable::Intern(const char* name, const BlockShape& shape) {
  // A library that is loaded over and over may bring each name at ever new addresses.
  if (addresses_.size() >= 2 * capacity_) ForgetAddresses();
  const uint32_t fresh = static_cast<uint32_t>(addresses_.size());
  const uint32_t found = by_address_.FindOrAdd(
      HashOf(name, shape), fresh,
      [&](uint32_t id) { return addresses_[id].name == name && addresses_[id].shape == shape; },
      [&](uint32_t id) { return HashOf(addresses_[id].name, addresses_[id].shape); });
  if (found == fresh) addresses_.push_back({name, shape, InternByName(name, shape)});
  return addresses_[found].kernel;
}

KernelId KernelTable::InternByName(std::string_view name, const BlockShape& shape) {
  const uint64_t hash = HashOf(std::hash<std::string_view>()(name), shape);
  const auto is_it = [&](uint32_t id) {
    return kernels_[id].name == name && kernels_[id].shape == shape;
  };
  const auto fresh = static_cast<uint32_t>(kernels_.size());
  if (fresh >= capacity_) {
    return KernelId{by_name_.Find(hash, is_it).value_or(static_cast<uint32_t>(kOtherKernels))};
  }
  const auto hash_of = [&](uint32_t id) { return kernels_[id].hash; };
  const uint32_t found = by_name_.FindOrAdd(hash, fresh, is_it, hash_of);
  if (found == fresh) kernels_.push_back({std::string(name), shape, hash});
  return KernelId{found};
}

void KernelTable::ForgetAddresses() {
  addresses_.clear();
  by_address_ = {};
}

}  // namespace pystrobe::gpu
