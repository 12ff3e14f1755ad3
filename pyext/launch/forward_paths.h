// SPDX-License-Identifier: Apache-2.0
//
// On which path an operation was called whose gradient is made later, by another thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "pyext/launch/node_number.h"

namespace pystrobe::launch {

/// The paths of the last nodes, some kSlots, by their number. A slot is one number, so that noting
/// is a look and a store:
///
///   bits 0-26 path, 27-40 thread, 41-46 session, 47-63 the upper bits of the sequence number
///
/// All but the path say whose it is: a slot that another node has taken is not mistaken, where no
/// thread makes 2^35 nodes, and no two of them are 2^14 threads apart. 2 MB of address space, of
/// which what was used is memory.
class ForwardPaths {
 public:
  static constexpr size_t kSlots = 1 << 18;
  static constexpr uint32_t kMaxPath = (1 << 27) - 1;

  /// Fails where there is no address space.
  static Result<ForwardPaths> Make();

  /// Only the first one of a node counts: what comes later may be of an operation without one.
  /// `path` is not 0; one that is too great is not kept. `session`: paths of another one mean
  /// something else. [any thread] [async-signal-safe]
  void Note(NodeNumber node, uint32_t session, uint32_t path) const noexcept;
  /// Nullopt where it was not noted, or is forgotten. [any thread]
  std::optional<uint32_t> Find(NodeNumber node, uint32_t session) const noexcept;
  /// Forgets all, and gives the memory back. What is noted meanwhile may stay.
  void Clear();

 private:
  explicit ForwardPaths(LazyArray<uint64_t> slots) : slots_(std::move(slots)) {}

  LazyArray<uint64_t> slots_;
};

}  // namespace pystrobe::launch
