// SPDX-License-Identifier: Apache-2.0
//
// How autograd numbers what it will go back through.
#pragma once

#include <cstdint>

namespace pystrobe::launch {

/// One of autograd's nodes. The thread that made it counts its own, from 0.
struct NodeNumber {
  uint64_t sequence = 0;
  uint64_t thread = 0;  ///< as PyTorch numbers those that run operations, from 1

  bool operator==(const NodeNumber&) const = default;
};

}  // namespace pystrobe::launch
