// SPDX-License-Identifier: Apache-2.0
//
// A short repr() of an object of the target, without running any of its code. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

/// The value of the int at `object`, if it is one (bool too) and fits.
std::optional<int64_t> ReadInt(const Memory& memory, const Layout& layout, Address object);

/// The name of the type of `object` as tp_name has it. Nullopt when that cannot be read.
std::optional<std::string> TypeNameOf(const Memory& memory, const Layout& layout, Address object);

/// Numbers and None as Python writes them, str and bytes quoted, escaped and cut, containers as
/// <list of 3>, all else as <module.Type at 0x...>. Nullopt when it cannot be read. A few reads and
/// 16 KiB at most whatever the object is: of a class' names the first 128 are searched for its
/// module, without which it is <Type at 0x...>.
std::optional<std::string> Describe(const Memory& memory, const Layout& layout, Address object);

}  // namespace pystrobe::pyabi
