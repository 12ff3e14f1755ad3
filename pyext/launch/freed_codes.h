// SPDX-License-Identifier: Apache-2.0
//
// Hears of code objects that are freed: from 3.12 on the interpreter tells. Before that the slot of
// the type of code objects that frees them is taken meanwhile.
#pragma once

#include "sampler/pyabi/memory.h"

namespace pystrobe::launch {

/// One for the process. [GIL held]
class FreedCodes {
 public:
  using OnFreed = void (*)(pyabi::Address code);
  /// Of which interpreters' code objects it hears.
  enum class Told {
    kOfNone,  ///< the interpreter has told too many others already
    kOfThisInterpreter,
    kOfAll,
  };

  /// From now on `on_freed` is called before the memory of a code object may be another's, by the
  /// thread that frees it.
  static Told Start(OnFreed on_freed);
  static void Stop();
};

}  // namespace pystrobe::launch
