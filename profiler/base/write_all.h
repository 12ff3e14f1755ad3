// SPDX-License-Identifier: Apache-2.0
//
// Writing to a descriptor until all is written. [any thread]
#pragma once

#include <string_view>

#include "profiler/base/error.h"

namespace pystrobe {

struct WriteFailure {
  bool closed = false;  ///< the reader went away
  Error error;
};

/// Writes everything. Fails with kIo, of which EPIPE is told apart by `closed`.
std::expected<void, WriteFailure> WriteAll(int fd, std::string_view text);

}  // namespace pystrobe
