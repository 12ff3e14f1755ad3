// SPDX-License-Identifier: Apache-2.0
//
// Reading another address space (or our own, guarded), behind an interface: everything that knows
// CPython's layout works over it and can be tested and fuzzed over bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace pystrobe::pyabi {

/// An address in the target. Not a pointer: never dereferenced here.
using Address = uint64_t;

/// One piece of a scattered read.
struct ReadRequest {
  Address address;
  void* into;
  size_t size;
};

/// [implementations say which thread]
class Memory {
 public:
  virtual ~Memory() = default;

  /// Copies all pieces, in order, in as few system calls as can be (one up to IOV_MAX pieces).
  /// Returns false when any byte could not be read; contents are then unspecified.
  virtual bool ReadAll(std::span<const ReadRequest> requests) const = 0;

  bool Read(Address address, void* into, size_t size) const {
    ReadRequest request{address, into, size};
    return ReadAll({&request, 1});
  }

  /// Reads a trivially copyable value.
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  std::optional<T> Read(Address address) const {
    T value;
    if (!Read(address, &value, sizeof value)) return std::nullopt;
    return value;
  }
};

}  // namespace pystrobe::pyabi
