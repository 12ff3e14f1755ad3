// SPDX-License-Identifier: Apache-2.0
//
// What a device did, summed up as it comes in, so that a run of hours takes no more memory than one
// of seconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "gpu/gpu_work.h"
#include "gpu/kernel_table.h"
#include "profiler/base/id_index.h"

namespace pystrobe::gpu {

/// What is summed apart. The grid is not in it: where sequences have ever other lengths, there
/// would be a sum for each; nor is the range, of which each time that it is open is another.
struct SumKey {
  LaunchOrigin origin;               ///< its range is 0
  std::optional<uint32_t> captured;  ///< as GpuWork has it
  KernelId kernel{};                 ///< of copies and sets too, by their names
  uint32_t device = 0;
  uint32_t stream = 0;
  WorkKind kind = WorkKind::kKernel;

  bool operator==(const SumKey&) const = default;
};

/// Times in nanoseconds.
struct WorkSum {
  /// Bucket i is of times in [2^(i-1), 2^i), the first of 0, the last of all that is longer (1 s).
  static constexpr size_t kBuckets = 32;

  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t min_ns = std::numeric_limits<uint64_t>::max();
  uint64_t max_ns = 0;
  uint64_t bytes = 0;
  uint64_t untimed = 0;  ///< done, but its times are not known: not in the count
  std::array<uint32_t, 3> last_grid{};
  std::array<uint64_t, kBuckets> buckets{};
};

/// One work on the timeline.
struct WorkSpan {
  int64_t begin_ns = 0, end_ns = 0;    ///< CLOCK_MONOTONIC
  uint32_t sum = 0;                    ///< number of its sum, which has its stream
  std::optional<LaunchMoment> launch;  ///< nullopt: not seen
  uint64_t bytes = 0;                  ///< of a copy or set
};

struct KernelSumsOptions {
  size_t max_sums = 1 << 15;     ///< 400 bytes each
  size_t max_kernels = 1 << 13;  ///< names with shapes; of CUTLASS a name has some 2 KB
  size_t max_spans = 0;          ///< the last so many are kept, 56 bytes each
};

/// Where there is no room for another sum, the first sum of the kind takes it: all of them together
/// are always exact. Nothing but a name or key that is new allocates. [one thread at a time]
class KernelSums {
 public:
  explicit KernelSums(const KernelSumsOptions& options);

  void Add(const GpuWork& work);
  /// So many like it, of which nobody knows when they ran. `is_of_several`: of what there was no
  /// room to tell apart.
  void AddUntimed(const GpuWork& work, uint64_t count, bool is_of_several);
  /// As if nothing had been added.
  void Clear();

  /// By number; the first kWorkKinds are of what there was no room for, and may be of nothing.
  size_t size() const { return sums_.size(); }
  const SumKey& key(size_t sum) const { return keys_[sum]; }
  const WorkSum& sum(size_t sum) const { return sums_[sum]; }
  const KernelTable& kernels() const { return kernels_; }

  /// Work of all sums.
  uint64_t count() const { return count_; }
  uint64_t total_ns() const { return total_ns_; }
  /// Work that is in the first sum of its kind.
  uint64_t overflowed() const { return overflowed_; }
  /// The last ones, oldest first in the order in which they were added.
  std::vector<WorkSpan> Spans() const;
  /// Older ones, and those said to be before the machine was booted.
  uint64_t spans_lost() const { return spans_lost_; }

 private:
  uint32_t SumOf(const SumKey& key);
  uint32_t SumOf(const GpuWork& work);

  const KernelSumsOptions options_;
  KernelTable kernels_;
  std::vector<SumKey> keys_;
  std::vector<WorkSum> sums_;
  IdIndex index_;
  std::vector<WorkSpan> spans_;  // a ring once it is full
  size_t next_span_ = 0;
  uint64_t spans_lost_ = 0;
  uint64_t count_ = 0, total_ns_ = 0, overflowed_ = 0;
};

}  // namespace pystrobe::gpu
