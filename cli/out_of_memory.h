// SPDX-License-Identifier: Apache-2.0
//
// Want of memory ends the process, in whatever thread and layer it is met: nothing below could go
// on without. It ends in order: one error, files removed and the recording saved as give_up.h has
// it.
#pragma once

namespace pystrobe::cli {

/// From now on `new` never fails: the process ends with kExitFailure instead. If it forwards
/// signals to a child (signals.h), it first waits for that child's end, and ends with its status.
void EndWhenOutOfMemory();

}  // namespace pystrobe::cli
