// SPDX-License-Identifier: Apache-2.0
//
// What a timeline is made of.
#pragma once

#include <cstdint>

#include "profiler/model/ids.h"

namespace pystrobe {

/// A thread goes into a call, or comes back from one: from then on `stack` is what is open. It is
/// one level above or below what was open before; at first that is kEmptyStack.
struct CallEvent {
  int64_t time_ns = 0;  ///< since the start of the recording; never before the thread's last one
  StackId stack = kEmptyStack;

  friend bool operator==(const CallEvent&, const CallEvent&) = default;
};

}  // namespace pystrobe
