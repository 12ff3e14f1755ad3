// SPDX-License-Identifier: Apache-2.0
//
// What there was of ranges, from the threads that open and close them to a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/range_instances.h"
#include "gpu/range_nodes.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

struct RangeOptions {
  size_t max_names = RangeNodes::kMaxNodes;   ///< within each other, kOther among them
  size_t instances = RangeInstances::kSlots;  ///< a power of two
  size_t max_spans = 0;                       ///< the last so many are kept, 24 bytes each
};

/// What was found of a recording's ranges. Names are as the program gave them, any bytes.
struct FoundRanges {
  struct Node {
    uint32_t parent;  ///< index into nodes, less than its own; or RangeNodes::kNone
    uint32_t domain;  ///< NvtxRanges's
    std::string name;
    uint64_t count;    ///< times that it began
    uint64_t host_ns;  ///< from begin to end, of all
  };
  /// One time that one was open, by CLOCK_MONOTONIC.
  struct Span {
    int64_t begin_ns, end_ns;
    uint32_t node;  ///< index into nodes
    uint32_t tid;   ///< of the thread that began it
  };
  std::vector<Node> nodes;  ///< the first is RangeNodes::kOther, and may have been nothing
  std::vector<Span> spans;  ///< in the order of their ends
  uint64_t spans_lost = 0;  ///< older ones
};

/// [any thread, but for Clear and Take: while no range begins or ends]
class RangeRecorder {
 public:
  /// A range that is open.
  struct Open {
    uint32_t node = RangeNodes::kNone;
    uint32_t around = RangeNodes::kNone;  ///< the node that ranges within it are within
    uint32_t instance = 0;                ///< 0: it has none
    uint32_t innermost = 0;  ///< its instance, or where it has none that of what it is within
    bool is_timed = true;
    int64_t begin_ns = 0;
  };

  /// Fails where there is no address space.
  static Result<std::unique_ptr<RangeRecorder>> Make();

  /// Forgets all.
  void Clear(const RangeOptions& options);
  /// What there was until now.
  FoundRanges Take();

  /// `within`: null where it is within none. Throws std::bad_alloc.
  Open Begin(const Open* within, uint32_t domain, std::string_view name);
  void End(const Open& range, Nanoseconds now, uint32_t tid);
  /// What it was within has ended before it: from now on it is within `within`.
  void Continue(Open& range, const Open* within, uint32_t domain, std::string_view name) noexcept;
  /// One that is not kept.
  void CountOther() { nodes_.Count(RangeNodes::kOther); }

  const RangeInstances& instances() const { return instances_; }

  /// Held over a fork(), so that the child can go on with it.
  void LockAll();
  void UnlockAll();

 private:
  RangeRecorder(RangeNodes nodes, RangeInstances instances)
      : nodes_(std::move(nodes)), instances_(std::move(instances)) {}

  RangeNodes nodes_;
  RangeInstances instances_;
  std::mutex spans_mutex_;  // of what follows; max_spans_ changes while nobody adds any
  size_t max_spans_ = 0;
  std::vector<FoundRanges::Span> spans_;  // a ring once it is full
  size_t next_span_ = 0;
  uint64_t spans_lost_ = 0;
};

}  // namespace pystrobe::gpu
