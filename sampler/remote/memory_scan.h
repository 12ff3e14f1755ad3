// SPDX-License-Identifier: Apache-2.0
//
// Finding an interpreter by looks alone, where no symbol and no section names it: fully static or
// packed executables. Slow (it reads all writable segments), so the last resort. [any thread]
#pragma once

#include <optional>
#include <vector>

#include "sampler/remote/find_runtime.h"

namespace pystrobe::remote {

using pyabi::Address;

/// 3.13+: where the cookie of the debug offsets stands. Before: where a list of interpreters
/// begins whose thread states point back to it; needs the version from the module's banner.
std::vector<RuntimeCandidate> ScanForRuntimes(const SymbolFinder& symbols);

/// A type object called `name` in the writable data of `module`.
std::optional<Address> ScanForType(const pyabi::Memory& memory, const pyabi::Layout& layout,
                                   const native::Module& module, std::string_view name);

}  // namespace pystrobe::remote
