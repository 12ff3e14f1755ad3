// SPDX-License-Identifier: Apache-2.0
//
// Hears of code objects that are freed, where the interpreter tells (3.12+).
#pragma once

#include "sampler/pyabi/memory.h"

namespace pystrobe::launch {

/// One for the process. [GIL held]
class FreedCodes {
 public:
  using OnFreed = void (*)(pyabi::Address code);

  /// From now on `on_freed` is called before the memory of a code object may be another's, by the
  /// thread that frees it. False where the interpreter does not tell, or has told too many others.
  static bool Start(OnFreed on_freed);
  static void Stop();
};

}  // namespace pystrobe::launch
