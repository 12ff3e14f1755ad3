// SPDX-License-Identifier: Apache-2.0
//
// What a person knows an instruction by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pystrobe::native {

/// A function that an instruction belongs to.
struct NativeFunction {
  std::string name;   ///< demangled; empty where no symbol table has it
  std::string file;   ///< source file, where there is debug information
  uint32_t line = 0;  ///< being executed in it; 0 without debug information
};

/// Where an instruction lies.
struct NativePlace {
  std::string binary;   ///< path of the ELF file as the process has it; empty: in none
  uint64_t offset = 0;  ///< of the function, or else of the instruction, from where that is mapped
  /// Innermost first; each but the last was inlined into the next. Empty where no name is known.
  std::vector<NativeFunction> functions;
};

}  // namespace pystrobe::native
