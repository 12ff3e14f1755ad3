// SPDX-License-Identifier: Apache-2.0
//
// What the HTML page lists beside functions and modules: kernels of a GPU, its idle time, waits for
// it, the ranges that the program named. [any thread]
#pragma once

#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"
#include "profiler/write/json_writer.h"

namespace pystrobe::write {

/// The member "lists": of those that there is anything of, and of whole recordings alone. Each has
/// its columns and rows of values; web/list.js says of what kinds. Reads samples where there are
/// some of a GPU's idle times; fails where they cannot be read.
Result<void> WriteLists(const Profile& profile, JsonWriter& json);

}  // namespace pystrobe::write
