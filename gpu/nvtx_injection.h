// SPDX-License-Identifier: Apache-2.0
//
// Hearing of the ranges of NVTX 3: as the tool that NVTX_INJECTION64_PATH names. It is the library
// that this is linked into, which exports InitializeInjectionNvtx2.
#pragma once

#include <optional>
#include <string>

#include "profiler/base/error.h"

namespace pystrobe::gpu {

/// From now on every library of this process that calls NVTX for the first time is heard, by
/// NvtxRanges; what has called it before never will be. Sets the variable, unless it is set: then
/// another tool has it. Again it does nothing. Children inherit the variable; where this was not
/// called it does nothing. [one thread at a time; as setenv, while nobody reads the environment]
Result<void> HearNvtx();

/// The tool that has NVTX in this process instead of us, by its path; nullopt: none has. After
/// HearNvtx. [any thread]
std::optional<std::string> OtherNvtxTool();

}  // namespace pystrobe::gpu
