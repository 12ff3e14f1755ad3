// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/debug_memory.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

namespace pystrobe::native {
namespace {

// It may not return (libdw.h), and libdw leaves nothing locked when it calls it. Distributions
// compile C with unwind tables: binaries_test.cpp has it thrown through the libdw that is linked.
[[noreturn]] void Throw() { throw NoMemoryForDebugInfo(); }

}  // namespace

void ThrowForWantOfMemory(Dwfl_Module* module) {
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);
  if (dwarf == nullptr) return;
  dwarf_new_oom_handler(dwarf, Throw);
  // What several files have in common may be in one of its own.
  if (Dwarf* common = dwarf_getalt(dwarf)) dwarf_new_oom_handler(common, Throw);
}

}  // namespace pystrobe::native
