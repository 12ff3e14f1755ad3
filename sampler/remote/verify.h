// SPDX-License-Identifier: Apache-2.0
//
// Proof by walking that a runtime and a layout belong together. [any thread]
#pragma once

#include <optional>
#include <string>

#include "profiler/base/error.h"
#include "sampler/remote/target.h"
#include "sampler/remote/thread_ids.h"

namespace pystrobe::remote {

struct Verified {
  Address code_type = 0;  ///< PyCode_Type, from the symbol or from the frames
  size_t interpreters = 0;
  size_t threads = 0;
  size_t frames = 0;  ///< that led to a code object with readable names; 0: no Python code ran
};

/// Checks what must hold of the interpreter at `runtime`: thread states point back to their
/// interpreter and belong to threads that the kernel knows, their pthread ids are the C library's,
/// frames lead to objects of PyCode_Type (`code_type`, when known by symbol) whose names are
/// strings. A running target changes under our eyes, so it looks several times.
///
/// Errors: kNotPython when the interpreter has not started (yet) or is finalised, kUnsupported with
/// what was seen when the layout does not hold, kExited.
Result<Verified> VerifyLayout(const pyabi::Memory& memory, const pyabi::Layout& layout,
                              Address runtime, std::optional<Address> code_type, ThreadIds& ids);

}  // namespace pystrobe::remote
