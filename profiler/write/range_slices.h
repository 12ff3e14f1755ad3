// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, in Perfetto's traces: on the tracks of their threads, or below
// these, and on tracks of their own beside those of streams. [one thread at a time]
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/base/hash_map.h"
#include "profiler/write/gpu_slices.h"
#include "profiler/write/perfetto_packet.h"
#include "profiler/write/range_timeline.h"

namespace pystrobe::write {

/// Profile, GPU's timeline and packets outlive it. Memory grows by what RangeTimeline has.
class RangeSlices {
 public:
  RangeSlices(const Profile& profile, const GpuTimeline& gpu, perfetto::PacketWriter& packets)
      : profile_(profile),
        tables_(profile.tables()),
        packets_(packets),
        timeline_(profile, gpu, false) {}

  /// All of it, behind what GpuSlices has written.
  void Write(const GpuSlices::Taken& taken);

 private:
  void BeginRow(const RangeTimeline::Row& row);
  /// That of a thread, which may be new; of a device, which is there.
  uint64_t TrackOfThread(uint32_t tid);
  uint64_t TrackOfDevice(uint32_t device) const;
  void WriteBegin(const RangeTimeline::Slice& slice);
  /// Ends what is open until then, the innermost first.
  void WriteEnds(std::optional<int64_t> until_ns);
  void Intern(const NamedRange& range, perfetto::Message& packet);

  const Profile& profile_;
  const Tables& tables_;
  perfetto::PacketWriter& packets_;
  RangeTimeline timeline_;
  GpuSlices::Taken taken_;
  HashMap<uint32_t, uint64_t> thread_tracks_;    // by thread id
  std::vector<int64_t> open_;                    // ends of what is open in the row, outermost first
  HashSet<uint32_t> told_names_, told_domains_;  // strings that the sequence has
};

}  // namespace pystrobe::write
