// SPDX-License-Identifier: Apache-2.0
//
// Kernels by number: a name and a shape of blocks each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu_work.h"
#include "profiler/base/id_index.h"

namespace pystrobe::gpu {

enum class KernelId : uint32_t {};

/// Finds a kernel by its name's address, which is one look; where that is new, by the name itself.
/// At most `capacity` of them: others are kOtherKernels. [one thread at a time]
class KernelTable {
 public:
  static constexpr KernelId kOtherKernels{0};

  explicit KernelTable(size_t capacity);

  KernelId Intern(const char* name, const BlockShape& shape);

  const std::string& name(KernelId id) const { return Of(id).name; }  ///< mangled
  const BlockShape& shape(KernelId id) const { return Of(id).shape; }
  /// Others included.
  size_t size() const { return kernels_.size(); }

 private:
  struct Kernel {
    std::string name;
    BlockShape shape;
    uint64_t hash;
  };
  struct Address {
    const char* name;
    BlockShape shape;
    KernelId kernel;
  };

  const Kernel& Of(KernelId id) const { return kernels_[static_cast<uint32_t>(id)]; }
  KernelId InternByName(std::string_view name, const BlockShape& shape);
  void ForgetAddresses();

  const size_t capacity_;
  std::vector<Kernel> kernels_;
  IdIndex by_name_;
  std::vector<Address> addresses_;
  IdIndex by_address_;
};

}  // namespace pystrobe::gpu
