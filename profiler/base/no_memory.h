// SPDX-License-Identifier: Apache-2.0
//
// Want of memory that a C library reports. [any thread]
#pragma once

#include <new>

namespace pystrobe {

/// Meets it as `new` does: calls the new-handler, which may end the process or throw. Where there
/// is none, or it returns, throws std::bad_alloc; unlike `new` it has nothing to try again.
[[noreturn]] inline void FailToAllocate() {
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

}  // namespace pystrobe
