// SPDX-License-Identifier: Apache-2.0
//
// The limit of open files: sampling keeps up to three files open for each thread of the target.
#pragma once

namespace pystrobe::cli {

/// Raises the soft limit to the hard one. Once, before threads are started.
void RaiseFileLimit();

/// Takes that back, in a child that is about to become another program. [async-signal-safe]
void RestoreFileLimit();

}  // namespace pystrobe::cli
