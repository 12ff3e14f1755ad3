// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, summed up by what launched it, as a part of a recording.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "profiler/model/ids.h"

namespace pystrobe {

/// Function::file of what is no function of the program but work of a GPU: a kernel, copy or set.
inline constexpr std::string_view kGpuFile = "<gpu>";

enum class GpuWorkKind : uint8_t { kKernel, kCopy, kSet };

/// One that the process used. Its number is CUDA's, of those that the process sees.
struct GpuDevice {
  uint32_t number = 0;
  StringId name = kEmptyString;
  uint32_t multiprocessors = 0;  ///< 0: not known

  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

/// How much of a device a kernel can fill, by its shape and its last grid: what fits, not what was
/// there.
struct GpuOccupancy {
  uint32_t blocks_per_multiprocessor = 0;
  double theoretical = 0;      ///< warps that fit, of those that a multiprocessor holds
  double waves = 0;            ///< times that the device is filled
  double tail_efficiency = 0;  ///< share of the places with work, if all blocks take equally long

  friend bool operator==(const GpuOccupancy&, const GpuOccupancy&) = default;
};

/// A kernel of one shape of blocks. Copies and sets too, by a name for each kind.
struct GpuKernel {
  GpuWorkKind kind = GpuWorkKind::kKernel;
  StringId name = kEmptyString;        ///< demangled, in full
  StringId short_name = kEmptyString;  ///< without what it returns and its arguments
  std::array<uint32_t, 3> block{};     ///< threads
  std::array<uint32_t, 3> cluster{};   ///< blocks; all 0 where there are none
  uint32_t registers = 0;              ///< of a thread
  uint32_t static_shared = 0;          ///< bytes of a block
  uint32_t dynamic_shared = 0;         ///< bytes of a block

  friend bool operator==(const GpuKernel&, const GpuKernel&) = default;
};

/// All work of one kind that came from one place. Times in nanoseconds, of the device.
struct GpuSum {
  /// Bucket i is of times in [2^(i-1), 2^i), the first of 0, the last of all that is longer.
  static constexpr size_t kBuckets = 32;
  static constexpr uint32_t kNoStream = ~uint32_t{0};

  StackId stack = kEmptyStack;  ///< where it was launched; empty: in no Python, or not known
  uint32_t kernel = 0;          ///< index into GpuRecord::kernels
  uint32_t device = 0;          ///< GpuDevice::number
  uint32_t stream = 0;          ///< as CUPTI numbers them; kNoStream: not known
  uint64_t count = 0;
  /// Done, but the device told no times: not in the count. With GpuQuality::launches_only what was
  /// launched.
  uint64_t untimed = 0;
  uint64_t total_ns = 0;
  uint64_t min_ns = 0, max_ns = 0;  ///< 0 where the count is
  uint64_t bytes = 0;               ///< of copies and sets
  std::array<uint32_t, 3> last_grid{};
  std::array<uint64_t, kBuckets> buckets{};
  std::optional<GpuOccupancy> occupancy;  ///< of kernels, where it can be worked out
  StringId advice = kEmptyString;         ///< in words, on what may be worth a change

  friend bool operator==(const GpuSum&, const GpuSum&) = default;
};

/// One work by itself, on the timeline. Times of CLOCK_MONOTONIC, as
/// Metadata::start_monotonic_ns.
struct GpuSpan {
  int64_t begin_ns = 0, end_ns = 0;  ///< on the device
  uint32_t sum = 0;                  ///< index into GpuRecord::sums
  uint32_t tid = 0;                  ///< of the thread that launched it; 0: not seen
  int64_t launch_ns = 0;             ///< when that began to; 0: not seen
  uint64_t bytes = 0;                ///< of a copy or set

  friend bool operator==(const GpuSpan&, const GpuSpan&) = default;
};

/// Between the begin of a device's first work and the end of its last one. Times in nanoseconds.
struct GpuUse {
  uint32_t device = 0;   ///< GpuDevice::number
  uint64_t busy_ns = 0;  ///< at least one of its streams had work
  uint64_t idle_ns = 0;

  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

/// Why a device had nothing to do until its next work began.
enum class GpuIdleCause : uint8_t {
  kQueue,     ///< that was launched in time: it waited for another stream, or for the device itself
  kLaunch,    ///< it was being launched: from the begin of the call on
  kLaunches,  ///< launches followed each other, 100 us apart at most, but came too late
  kWait,      ///< the thread that launched it was waiting for the device, and went on after that
  kHost,      ///< nothing was launched on it for longer: the program did something else
  kUnknown,   ///< its launch was not seen
};
inline constexpr size_t kGpuIdleCauses = 6;

/// All times that a device had nothing to do for one reason, between the same two places.
struct GpuIdle {
  uint32_t device = 0;
  GpuIdleCause cause = GpuIdleCause::kUnknown;
  /// What the program did last: kLaunches, kHost: the launch before, or the wait that it went on
  /// from; kWait: the wait.
  StackId from = kEmptyStack;
  StackId to = kEmptyStack;  ///< of the launch that ended it
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  friend bool operator==(const GpuIdle&, const GpuIdle&) = default;
};

/// One time of kHost by itself. Times of CLOCK_MONOTONIC, as Metadata::start_monotonic_ns.
struct GpuGap {
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t idle = 0;  ///< index into GpuRecord::idles
  uint32_t tid = 0;   ///< of the thread whose launch ended it

  friend bool operator==(const GpuGap&, const GpuGap&) = default;
};

/// What threads waited for a device, in one place.
struct GpuWait {
  StackId stack = kEmptyStack;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;

  friend bool operator==(const GpuWait&, const GpuWait&) = default;
};

/// How far the figures can be trusted. Where all is well, the records that are not of graphs are as
/// many as the launches of kernels, copies and sets that neither failed nor were captured.
struct GpuQuality {
  uint64_t kernel_launches = 0, graph_launches = 0, copies = 0, sets = 0;  ///< calls of the driver
  uint64_t failed = 0;                                                     ///< of these
  uint64_t records = 0;     ///< what the device was seen to do
  uint64_t unmatched = 0;   ///< of these, whose launch was not seen
  uint64_t dropped = 0;     ///< records that are lost
  uint64_t overflowed = 0;  ///< of what is in sums: in one that has all there was no room for
  int64_t duration_ns = 0;  ///< between start and stop
  int64_t own_cpu_ns = 0;   ///< CPU time of reading records
  uint64_t captured = 0;    ///< of the calls: became a part of a graph, with no record
  uint64_t of_graphs = 0;   ///< of `records`: a launch of a graph has many
  /// Nobody was asked what the device did. The sums are of what was launched, without times or
  /// streams; there are no records, and no uses.
  bool launches_only = false;
  StringId source = kEmptyString;  ///< what told: "CUPTI 13.0, driver for CUDA 13.0"

  friend bool operator==(const GpuQuality&, const GpuQuality&) = default;
};

/// Ids are of the tables that it comes with: TranslateGpu() gives those of others.
struct GpuRecord {
  std::vector<GpuDevice> devices;
  std::vector<GpuKernel> kernels;
  std::vector<GpuSum> sums;  ///< no two of one stack, kernel, device and stream
  std::vector<GpuSpan>
      spans;                 ///< with a timeline: the last ones, in the order they ended in, about
  uint64_t spans_lost = 0;   ///< older ones, for which there was no room, and of no moment
  std::vector<GpuUse> uses;  ///< of each device that did something that was timed
  std::vector<GpuIdle> idles;
  std::vector<GpuWait> waits;
  std::vector<GpuGap> gaps;  ///< the longest, by their begin
  GpuQuality quality;

  friend bool operator==(const GpuRecord&, const GpuRecord&) = default;
};

}  // namespace pystrobe
