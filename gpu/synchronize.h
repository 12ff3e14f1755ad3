// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// Waits until every device has done what it was given: in its primary context, where there is one,
/// and in the context that is current here. Nothing where nobody has initialised the driver. Tries
/// all of them, and tells of the first that failed. While a stream is being captured into a graph
/// it fails, and may end the capture. [any thread; what work may wait for, the GIL say, is not
/// held]
Result<void> SynchronizeDevices();

}  // namespace pystrobe::gpu
