// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/trace/thread_trace.h"

namespace pystrobe::trace {

/// Has every function in the tree.
class AllKeys : public KeyWatch {
  bool Admits(Key) override { return true; }
  bool IsRefused(Key) override { return false; }
};

}  // namespace pystrobe::trace
