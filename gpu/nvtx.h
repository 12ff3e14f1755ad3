// SPDX-License-Identifier: Apache-2.0
//
// Ranges that tools show: Nsight Systems, and any other that NVTX_INJECTION64_PATH names.
#pragma once

#include <cstdint>
#include <string>

namespace pystrobe::gpu {

/// Opens a range on the calling thread, in the domain "pystrobe" of NVTX 3. Without a tool it does
/// nothing, and costs a few nanoseconds: whether there is one is found out by the first call, for
/// good. `name`: UTF-8. [any thread]
void PushNvtxRange(const std::string& name);

/// Closes the one that the calling thread has opened last. [any thread]
void PopNvtxRange();

/// The same for a range that need not be within others of its thread: the number by which any
/// thread ends it. [any thread]
uint64_t StartNvtxRange(const std::string& name);
void EndNvtxRange(uint64_t number);

}  // namespace pystrobe::gpu
