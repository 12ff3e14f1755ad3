// SPDX-License-Identifier: Apache-2.0
//
// Taking values out of copied bytes. [any thread]
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace pystrobe::pyabi {

/// The T at `offset` of `bytes`; zero when it does not lie inside.
template <typename T>
  requires std::is_trivially_copyable_v<T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof value <= bytes.size() - offset) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace pystrobe::pyabi
