// SPDX-License-Identifier: Apache-2.0
//
// What devices did for each range: of every time that it was open, on each stream, from where the
// first work launched in it begins to where the last one ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/gpu_work.h"
#include "gpu/range_instances.h"
#include "profiler/base/id_index.h"

namespace pystrobe::gpu {

/// Of a range on one stream, the ranges within it included. Times in nanoseconds.
struct RangeStreamSum {
  uint32_t node = 0;  ///< RangeNodes's
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t instances = 0;  ///< times that it was open and put something on the stream
  uint64_t span_ns = 0;    ///< of each, from the first to the last; all together
  uint64_t busy_ns = 0;    ///< of all work, and no more than the span
  uint64_t works = 0;      ///< those without times too

  bool operator==(const RangeStreamSum&) const = default;
};

struct RangeProjectionOptions {
  /// Instances on streams that are looked at apart, 72 bytes each. Where there are more, those that
  /// have ended are taken to be done, the longest unseen first; if work of one comes after that, it
  /// is as if the range had been opened once more.
  size_t max_open = 1 << 15;
  size_t max_sums = 1 << 16;  ///< ranges on streams; all more are RangeNodes::kOther
};

/// In bounded memory; what is known allocates nothing. [one thread at a time]
class RangeProjection {
 public:
  /// `instances` outlives it, null: there are none.
  explicit RangeProjection(const RangeInstances* instances,
                           const RangeProjectionOptions& options = {});

  /// To the range that it was launched in, and to all that this is within. A work of none, or of
  /// one that is forgotten, is passed over.
  void Add(const GpuWork& work);
  /// As if nothing had been added.
  void Clear();

  /// Of all that was added, no two of one range and stream.
  std::vector<RangeStreamSum> Sums() const;

 private:
  struct Open {
    uint32_t instance;
    bool continues;            // one that has counted
    RangeStreamSum sum;        // without instances and span_ns
    int64_t begin_ns, end_ns;  // both 0: of no work is it known
    uint64_t seen;             // the last work's number
  };
  /// By range and stream.
  struct SumTable {
    std::vector<RangeStreamSum> sums;
    IdIndex index;
    void Add(const Open& open, size_t max);
    RangeStreamSum& Of(const RangeStreamSum& key, size_t max);
  };

  uint64_t HashOfOpen(uint32_t id) const;
  Open& OpenOf(const RangeInstances::Instance& instance, const GpuWork& work);
  void MakeRoom();

  const RangeInstances* const instances_;
  const RangeProjectionOptions options_;
  std::vector<Open> open_;
  IdIndex index_;
  SumTable done_;
  uint64_t works_ = 0;
};

}  // namespace pystrobe::gpu
