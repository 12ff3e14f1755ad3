// SPDX-License-Identifier: Apache-2.0
//
// The parts of a str. [any thread]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

/// What the head of a str says of its characters.
struct StringHead {
  uint32_t data = 0;      ///< offset from the start of the object to them, or to a pointer to them
  bool is_apart = false;  ///< a pointer: instances of subclasses of str
  uint32_t width = 0;     ///< bytes per character: 1, 2 or 4
  uint64_t length = 0;    ///< characters
  uint64_t byte_count() const { return length * width; }
};

/// Reads the head from `layout.object.ascii_data` bytes. Nullopt when it is not that of a str, or
/// that of one longer than `max_length` characters.
std::optional<StringHead> ParseStringHead(const Layout& layout, std::span<const std::byte> head,
                                          uint64_t max_length);

/// Where the characters of the str at `object` are; 0 when that cannot be read.
Address CharactersOf(const Memory& memory, Address object, const StringHead& head);

}  // namespace pystrobe::pyabi
