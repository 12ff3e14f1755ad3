// SPDX-License-Identifier: Apache-2.0
//
// The functions of one ELF file by their addresses. (libdwfl looks through all symbols each time.)
#pragma once

#include <cstdint>
#include <vector>

#include "sampler/native/registers.h"

struct Dwfl_Module;

namespace pystrobe::native {

/// [one thread at a time for one Dwfl]
class SymbolTable {
 public:
  SymbolTable() = default;
  /// Of the file and its separate debug information. Names are `module`'s, which outlives it.
  explicit SymbolTable(Dwfl_Module* module);

  /// The symbol of the function that `pc`, an address in memory, is in; null for none. Of several
  /// names of one function the plainest. `start`: of that function, where it is known otherwise:
  /// the symbols of some have no size.
  const char* Find(Address pc, Address start) const;

 private:
  struct Symbol {
    Address start = 0;
    uint64_t size = 0;  // 0: the file does not say
    const char* name = nullptr;
  };

  std::vector<Symbol> symbols_;  // by address, each once
};

}  // namespace pystrobe::native
