// SPDX-License-Identifier: Apache-2.0
//
// Names of ranges within each other, with how often and how long each was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::gpu {

/// A tree that grows, by numbers from 0 in the order of their making. What is known is found
/// without a lock.
class RangeNodes {
 public:
  static constexpr size_t kMaxNodes = 1 << 16;
  static constexpr size_t kMaxName = 512;  ///< bytes; longer ones are cut
  static constexpr uint32_t kNone = ~uint32_t{0};
  /// Of all that there is no room for; it is within none. A range that calls itself so is one too.
  static constexpr uint32_t kOther = 0;
  static constexpr std::string_view kOtherName = "(other ranges)";

  struct Node {
    uint32_t parent;  ///< less than its own number, or kNone
    uint32_t domain;
    const std::string* name;
    uint64_t hash;
    uint64_t count;
    uint64_t host_ns;
  };

  /// Fails where there is no address space. There is no node but kOther.
  static Result<RangeNodes> Make();

  /// Forgets all but kOther; from now on there are at most `max`. [while nobody else calls
  /// anything]
  void Clear(size_t max = kMaxNodes);

  /// Throws std::bad_alloc. [any thread]
  uint32_t FindOrAdd(uint32_t parent, uint32_t domain, std::string_view name);
  /// [any thread]
  void Count(uint32_t node);
  void AddTime(uint32_t node, uint64_t nanoseconds);

  /// [while nobody adds any]
  size_t size() const { return size_; }
  const Node& operator[](uint32_t node) const { return nodes_[node]; }

  /// Held over a fork(), so that the child can go on with it.
  std::mutex& mutex() { return *mutex_; }

 private:
  RangeNodes(LazyArray<Node> nodes, LazyArray<uint32_t> index);
  static uint64_t HashOf(uint32_t parent, uint32_t domain, std::string_view name);

  LazyArray<Node> nodes_;
  LazyArray<uint32_t> index_;          // of the number + 1, by hash; 0: free
  std::unique_ptr<std::mutex> mutex_;  // of what follows, and of adding
  size_t size_ = 0, max_ = kMaxNodes;
  std::deque<std::string> names_;  // they stay where they are
};

}  // namespace pystrobe::gpu
