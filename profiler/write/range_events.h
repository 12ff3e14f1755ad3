// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, as trace events, by the names that torch.profiler's files have:
// "user_annotation" on the threads, "gpu_user_annotation" on the streams. [one thread at a time]
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/analyze/profile.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/range_timeline.h"

namespace pystrobe::write {

/// The caller has written an event before each call that writes some. Profile, GPU's timeline and
/// output outlive it. Memory grows by what RangeTimeline has.
class RangeEvents {
 public:
  RangeEvents(const Profile& profile, const GpuTimeline& gpu, OutputBuffer& out);

  /// In the file's other data: what is not there.
  void WriteQuality();
  /// Names of rows of ranges alone, and of threads that are not in `named`.
  void WriteNames(std::span<const uint64_t> named);
  /// Before the works of a GPU: of what begins at once the first is around the others.
  void WriteSlices();

 private:
  void WriteName(int64_t pid, uint64_t tid, std::string_view name, uint64_t sort_index);
  void WriteSlice(const RangeTimeline::Slice& slice, const RangeTimeline::Row& row);

  const Profile& profile_;
  const Tables& tables_;
  OutputBuffer& out_;
  RangeTimeline timeline_;
};

}  // namespace pystrobe::write
