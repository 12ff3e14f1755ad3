// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "profiler/base/error.h"

namespace pystrobe::store {

/// The error for bytes that no writer wrote; `what` they are, in words. [any thread]
inline std::unexpected<Error> Corrupt(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, "{}", what);
}

}  // namespace pystrobe::store
