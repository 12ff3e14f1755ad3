// SPDX-License-Identifier: Apache-2.0
//
// Dictionaries of the target, and attributes of its objects wherever a version keeps them. Best
// effort on a running program: every size is bounded, what cannot be read is left out. Private to
// this room.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

struct DictEntry {
  Address key = 0;
  Address value = 0;
};

/// More entries than those of any dict that is looked at; one with more makes no sense.
inline constexpr uint64_t kMaxEntries = 1U << 16;

/// The first entries of the dict at `dict`, at most `most` of them, in order; empty when it makes
/// no sense.
std::vector<DictEntry> ReadDict(const Memory& memory, const Layout& layout, Address dict,
                                uint64_t most = kMaxEntries);

/// What vars(object) would show, whether there is a dict yet or not; at most `most` of it.
std::vector<DictEntry> ReadAttributes(const Memory& memory, const Layout& layout, Address object,
                                      uint64_t most = kMaxEntries);

/// The value whose key is the str `name`; 0 when there is none.
Address FindName(const Memory& memory, const Layout& layout, std::span<const DictEntry> entries,
                 std::string_view name);

/// sizeof(PyObject): where the fields of an object that has no size begin.
inline uint32_t HeadSize(const Layout& layout) {
  return layout.object.type + 8;  // ob_type is its last field in every build
}

}  // namespace pystrobe::pyabi
