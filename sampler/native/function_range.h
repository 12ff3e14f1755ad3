// SPDX-License-Identifier: Apache-2.0
//
// Where functions begin, as the table for exception handlers has it, which stripped files have too.
#pragma once

#include <optional>

#include "sampler/native/elf_image.h"

namespace pystrobe::native {

/// The function that `pc` is in, up to the next one, read from the .eh_frame_hdr of `module` as it
/// lies in memory (Linux Standard Base, 10.6.2). A function that the compiler has split has
/// several. Nullopt where there is no such table, or not in the form that linkers write. [any
/// thread]
std::optional<AddressRange> FunctionRange(const pyabi::Memory& memory, const Module& module,
                                          Address pc);

}  // namespace pystrobe::native
