// SPDX-License-Identifier: Apache-2.0
//
// The interpreter's own lists: interpreters, and the thread states of each.
#pragma once

#include <vector>

#include "profiler/base/error.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// Reads the lists that begin in `runtime` once. `tid` is what the thread state says: a number of
/// the target's own pid namespace, or 0 (3.10-). Fails with kUnreadable, saying what was seen, when
/// they do not fit together: every state must point back to its interpreter and to its neighbour. A
/// change while they are read looks the same, so a caller tries again. [any thread]
Result<ThreadStates> ReadThreadStates(const pyabi::Memory& memory, const pyabi::Layout& layout,
                                      Address runtime);

/// The frame a thread state is at now, 0 when it runs no Python code or cannot be read.
Address ReadCurrentFrame(const pyabi::Memory& memory, const pyabi::Layout& layout, Address tstate);

}  // namespace pystrobe::remote
