// SPDX-License-Identifier: Apache-2.0
//
// Reads CUPTI's records. For gpu's own source files: this header needs <cupti.h>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gpu/cupti_api.h"
#include "gpu/gpu_work.h"
#include "gpu/graph_nodes.h"
#include "gpu/idle_time.h"
#include "gpu/kernel_sums.h"
#include "gpu/launch_moments.h"
#include "gpu/launch_ring.h"
#include "gpu/range_projection.h"
#include "profiler/base/clock.h"

namespace pystrobe::gpu {

struct DecodedCounts {
  uint64_t records = 0;    ///< of kernels, copies and sets
  uint64_t of_graphs = 0;  ///< of these, of graphs
  uint64_t unmatched = 0;  ///< of these, whose launch was not found
  uint64_t other = 0;      ///< of other kinds, which nobody asked for
};

/// From CLOCK_MONOTONIC to CUPTI's clock, by the shortest of a few looks at both; nullopt where
/// CUPTI tells its time in none of them. [any thread]
std::optional<Nanoseconds> CuptiClockOffset(const CuptiApi& cupti);

/// Where a record's launch is found. All outlive the decoder.
struct LaunchesSeen {
  const LaunchRing& ring;
  const GraphNodes& graph_nodes;
  const LaunchMoments& moments;
};

/// Where each work is added. All outlive the decoder.
struct WorkSums {
  KernelSums& kernels;
  IdleTime& idle;
  RangeProjection& ranges;
};

/// Records are of the layout of CUDA 12.0: later ones have more behind it. [one thread at a time]
class ActivityDecoder {
 public:
  /// All outlive it.
  ActivityDecoder(const CuptiApi& cupti, const LaunchesSeen& launches, const WorkSums& to)
      : cupti_(cupti), launches_(launches), to_(to) {}

  /// Adds the records of one buffer to all sums; without times where CUPTI's clock is not to be
  /// had. Allocates only for what is new.
  void Decode(uint8_t* data, size_t bytes);
  const DecodedCounts& counts() const { return counts_; }
  /// Starts counting over; what began before `since` (CLOCK_MONOTONIC) counts for nothing.
  void Restart(Nanoseconds since) {
    counts_ = {};
    since_ns_ = since.count();
  }

 private:
  template <typename Record>
  GpuWork Common(const Record& record, WorkKind kind);
  void Add(const GpuWork& work);
  void AddKernel(const CUpti_Activity* record);
  template <typename Record>
  void AddCopy(const CUpti_Activity* record);
  void AddSet(const CUpti_Activity* record);
  const char* CopyName(uint8_t kind, uint8_t from, uint8_t to);
  const char* SetName(uint16_t memory);

  const CuptiApi& cupti_;
  const LaunchesSeen launches_;
  const WorkSums to_;
  std::optional<Nanoseconds> offset_;  // of the buffer that is read
  std::optional<int64_t> since_ns_;    // CLOCK_MONOTONIC
  DecodedCounts counts_;
  std::map<uint32_t, std::string> names_;  // of copies and sets; they stay where they are
};

}  // namespace pystrobe::gpu
