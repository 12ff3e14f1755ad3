// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "profiler/base/error.h"

namespace pystrobe::store {

/// Fills `buffer` from `offset` on; the size that was there to be read. Fails with kUnreadable, of
/// `name`. [any thread]
Result<size_t> ReadAt(int fd, uint64_t offset, std::span<uint8_t> buffer, const std::string& name);

}  // namespace pystrobe::store
