// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"

namespace pystrobe::gpu {

/// Waits until every device has done what it was given: in its primary context, where there is one,
/// and in the context that is current here. Nothing where nobody has initialised the driver. Tries
/// all of them, and tells of the first that failed. To wait while a stream is being captured into a
/// graph fails, and spoils the capture: `is_capturing` is asked before each, and where it says so
/// that one is not waited for, and that is the failure. [any thread; what work may wait for, the
/// GIL say, is not held]
Result<void> SynchronizeDevices(FunctionRef<bool()> is_capturing);

}  // namespace pystrobe::gpu
