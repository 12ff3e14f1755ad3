// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program and its libraries named (NVTX), as a part of a recording: how often
// each was entered, how long it took on the host, and what it took of devices.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/model/ids.h"

namespace pystrobe {

/// Ranges of one name within one other, of all threads: a node of a tree.
struct NamedRange {
  static constexpr uint32_t kNoParent = ~uint32_t{0};

  uint32_t parent = kNoParent;  ///< index into RangeRecord::ranges, less than its own
  StringId name = kEmptyString;
  StringId domain = kEmptyString;  ///< of NVTX; empty: the default one
  uint64_t count = 0;              ///< times that it began
  uint64_t host_ns = 0;  ///< from begin to end, of all; what was open at the end, until then

  friend bool operator==(const NamedRange&, const NamedRange&) = default;
};

/// What was launched in a range, the ranges within it included, on one stream. Times in
/// nanoseconds, of the device.
struct RangeOnStream {
  uint32_t range = 0;      ///< index into RangeRecord::ranges
  uint32_t device = 0;     ///< GpuDevice::number
  uint32_t stream = 0;     ///< as GpuSum::stream
  uint64_t instances = 0;  ///< times that the range began and put something on the stream
  uint64_t span_ns = 0;    ///< of each, from where its first work begins to where its last one ends
  uint64_t busy_ns = 0;    ///< of all work in it; less than the span where the stream waits
  uint64_t works = 0;      ///< kernels, copies and sets

  friend bool operator==(const RangeOnStream&, const RangeOnStream&) = default;
};

/// One time that a range was open, on the timeline. Times of CLOCK_MONOTONIC.
struct RangeSpan {
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t range = 0;  ///< index into RangeRecord::ranges
  uint32_t tid = 0;    ///< of the thread that began it

  friend bool operator==(const RangeSpan&, const RangeSpan&) = default;
};

/// Ids are of the tables that it comes with.
struct RangeRecord {
  std::vector<NamedRange> ranges;      ///< no two of one parent, name and domain
  std::vector<RangeOnStream> streams;  ///< no two of one range, device and stream
  std::vector<RangeSpan> spans;  ///< with a timeline: the last ones, in the order they ended in
  uint64_t spans_lost = 0;       ///< older ones, for which there was no room
  uint64_t overflowed = 0;       ///< begins that stand under a name for all there is no room for

  friend bool operator==(const RangeRecord&, const RangeRecord&) = default;
};

}  // namespace pystrobe
