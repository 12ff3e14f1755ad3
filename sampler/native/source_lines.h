// SPDX-License-Identifier: Apache-2.0
//
// Functions, inlined ones among them, and lines out of debug information.
#pragma once

#include <vector>

#include "sampler/native/native_place.h"
#include "sampler/native/registers.h"

struct Dwfl_Module;

namespace pystrobe::native {

/// What the debug information of libdwfl's `module` says of the instruction at `pc`, an address in
/// memory. See NativePlace. Empty where there is none.
/// [one thread at a time for one Dwfl]
std::vector<NativeFunction> FunctionsAt(Dwfl_Module* module, Address pc);

}  // namespace pystrobe::native
