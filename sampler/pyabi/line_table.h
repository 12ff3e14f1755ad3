// SPDX-License-Identifier: Apache-2.0
//
// From an offset into the bytecode to a line, as the target's own traceback would say it. Private
// to this room. [any thread]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sampler/pyabi/layout.h"

namespace pystrobe::pyabi {

/// The line of the instruction at `offset` bytes into the bytecode, by `table` (co_lnotab or
/// co_linetable) of a code object that begins at line `first_line`. A negative offset is a frame
/// that has not begun: its first line. 0 when the instruction has no line or the table does not
/// reach it. Any bytes will do for a table.
uint32_t LineAt(LineTableStyle style, std::span<const std::byte> table, int32_t first_line,
                int64_t offset);

}  // namespace pystrobe::pyabi
