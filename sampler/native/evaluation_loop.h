// SPDX-License-Identifier: Apache-2.0
//
// Where in an ELF file the interpreter's evaluation loop lies, stripped or not.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sampler/native/elf_image.h"

namespace pystrobe::native {

/// Its symbol, exported by every CPython.
inline constexpr std::string_view kEvaluationLoop = "_PyEval_EvalFrameDefault";

/// Compilers put what is rarely executed of a function elsewhere, and only a symbol table that is
/// mostly stripped tells whose it is. But the function jumps there: into the middle of what looks
/// like another one. [one thread]
class EvaluationLoop {
 public:
  /// Nullopt where `module` exports no evaluation loop.
  static std::optional<EvaluationLoop> Find(const pyabi::Memory& memory, const Module& module);

  /// `function`: as FunctionRange has it.
  bool Has(const AddressRange& function) const;

 private:
  EvaluationLoop(AddressRange function, std::vector<Address> jumps)
      : function_(function), jumps_(std::move(jumps)) {}

  AddressRange function_;
  std::vector<Address> jumps_;  // where they lead, out of it; sorted
};

}  // namespace pystrobe::native
