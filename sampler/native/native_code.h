// SPDX-License-Identifier: Apache-2.0
//
// The machine code of one process by its instructions: what each belongs to, asked for once.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "profiler/base/hash_map.h"
#include "sampler/native/binaries.h"
#include "sampler/native/evaluation_loop.h"
#include "sampler/native/merge.h"
#include "sampler/native/native_place.h"

namespace pystrobe::native {

/// [one thread]
class NativeCode {
 public:
  struct Known {
    CodeKind kind = CodeKind::kOther;
    NativePlace place;
  };

  /// Both outlive it.
  NativeCode(Binaries& binaries, const pyabi::Memory& memory)
      : binaries_(&binaries), memory_(&memory) {}

  /// Good until the next call. The first question about a file may take long, see Binaries.
  const Known& Of(Address instruction);
  /// After Binaries::Refresh: all, or what lay in no file.
  void Forget();
  void ForgetUnknown();

 private:
  CodeKind InterpreterKind(const EvaluationLoop& loop, Address instruction,
                           const NativePlace& place) const;
  /// Null for what is not the interpreter's.
  const EvaluationLoop* LoopOf(const Module& module);

  Binaries* binaries_;
  const pyabi::Memory* memory_;
  HashMap<Address, Known> known_;
  std::map<Address, std::optional<EvaluationLoop>> loops_;  // by the module's start
};

/// How a person is told of a function that has no name: its file, and where in it.
std::string NameOfUnknown(const NativePlace& place, Address instruction);

}  // namespace pystrobe::native
