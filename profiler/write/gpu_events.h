// SPDX-License-Identifier: Apache-2.0
//
// A GPU's part of trace events, with the fields that torch.profiler's files have (libkineto's
// output_json.cpp), so that what reads those reads these. [one thread at a time]
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "profiler/analyze/profile.h"
#include "profiler/base/hash_map.h"
#include "profiler/write/gpu_timeline.h"
#include "profiler/write/output_buffer.h"

namespace pystrobe::write {

/// "12.345", of 12,345 ns that are not below 0.
std::string Microseconds(int64_t ns);

/// The caller has written an event before each call that writes some. Profile and output outlive
/// it. Memory grows by what GpuTimeline has, and 16 MiB at most.
class GpuEvents {
 public:
  GpuEvents(const Profile& profile, OutputBuffer& out);

  bool empty() const { return timeline_.empty(); }
  const GpuTimeline& timeline() const { return timeline_; }
  /// What stands at the beginning of the file, with a comma behind it.
  void WriteHead();
  /// Names of the devices and their rows, and of threads that launched something and are not in
  /// `named`.
  void WriteNames(std::span<const uint64_t> named);
  void WriteWork();

 private:
  /// What is the same for each work of a sum.
  struct SumText {
    std::string name;  ///< with its category
    std::string args;  ///< those behind the ones that differ
  };

  void WriteThreadName(int64_t pid, uint64_t tid, std::string_view name, uint64_t sort_index);
  void WriteLaunch(const GpuTimeline::Launch& launch);
  void WriteSpan(const GpuTimeline::Work& work, const GpuTimeline::Row& row);
  const SumText& TextOf(const GpuTimeline::Work& work);
  std::string KernelArgs(const GpuSum& sum, const GpuKernel& kernel) const;

  const Profile& profile_;
  const Tables& tables_;
  OutputBuffer& out_;
  GpuTimeline timeline_;
  HashMap<uint32_t, SumText> texts_;
  size_t texts_size_ = 0;
};

}  // namespace pystrobe::write
