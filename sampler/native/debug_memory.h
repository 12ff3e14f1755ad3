// SPDX-License-Identifier: Apache-2.0
//
// Want of memory in libdw, whose own answer is to end the process. [one thread at a time for one
// Dwfl]
#pragma once

struct Dwfl_Module;

namespace pystrobe::native {

/// Thrown through functions of libdw. What they were about to make is not there; what was before is
/// good, and can be freed.
struct NoMemoryForDebugInfo {};

/// Reads the debug information of `module` if that was not done yet. From now on whatever asks
/// about it may throw that.
void ThrowForWantOfMemory(Dwfl_Module* module);

}  // namespace pystrobe::native
