// SPDX-License-Identifier: Apache-2.0
//
// File descriptors: how many are left, and what to say when there are none.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "profiler/base/error.h"

namespace pystrobe {

/// That `what`, such as "opening", could not be done to `path`. Where there are no descriptors left
/// it says what helps.
std::unexpected<Error> FailToOpen(int error_number, std::string_view what, const std::string& path);

/// File descriptors that this process may still open.
size_t CountFreeDescriptors();

}  // namespace pystrobe
