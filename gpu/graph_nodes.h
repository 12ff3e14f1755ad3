// SPDX-License-Identifier: Apache-2.0
//
// Where the work in CUDA graphs comes from: whoever launches a graph is not who captured it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "profiler/base/hash.h"
#include "profiler/base/hash_map.h"

namespace pystrobe::gpu {

/// The path on which each node of a graph was made, by CUPTI's numbers of nodes and graphs. What
/// runs is a copy of a node, which instantiation makes: it has the path of its original.
///
/// What has run is told of long after its graph may be gone, so nodes of those are forgotten only
/// where there is no room, the first to go first. [any thread]
class GraphNodes {
 public:
  /// Some 50 bytes each.
  static constexpr size_t kMostNodes = 1 << 19;

  explicit GraphNodes(size_t most = kMostNodes) : most_(most) {}

  /// Where nothing that is gone makes room, it is not noted.
  void Create(uint32_t graph, uint64_t node, uint32_t path) noexcept;
  /// Of a node that was created. Of an original that was not seen it has no path.
  void Clone(uint64_t node, uint64_t original) noexcept;
  /// Its graph is destroyed. What ran of it may still be asked for.
  void Destroy(uint32_t graph) noexcept;
  void Clear();

  /// Nullopt where it is not known.
  std::optional<uint32_t> PathOf(uint64_t node) const;
  size_t size() const;

 private:
  bool MakeRoom();

  const size_t most_;
  mutable std::mutex mutex_;  // of all below
  HashMap<uint64_t, uint32_t, PairHash> paths_;
  HashMap<uint32_t, std::vector<uint64_t>> nodes_;  // by graph
  std::deque<uint32_t> gone_;
};

}  // namespace pystrobe::gpu
