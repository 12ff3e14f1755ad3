// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace pystrobe {

/// Characters of `width` bytes, 1, 2 or 4, as UTF-8. What is no character (a lone surrogate, a
/// number beyond Unicode) becomes U+FFFD. [any thread]
std::string ToUtf8(std::span<const std::byte> characters, uint32_t width);

}  // namespace pystrobe
