// SPDX-License-Identifier: Apache-2.0
//
// Environment variables, looked up through what a test can give in their place.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "profiler/base/function_ref.h"

namespace pystrobe {

/// Looks up an environment variable.
using Environment = FunctionRef<std::optional<std::string>(const char* name)>;

/// The one of this process. [any thread, while none changes it]
struct ProcessEnvironmentLookup {
  std::optional<std::string> operator()(const char* name) const {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  }
};
inline constexpr ProcessEnvironmentLookup kProcessEnvironment;

}  // namespace pystrobe
