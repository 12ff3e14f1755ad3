// SPDX-License-Identifier: Apache-2.0
//
// A GPU's part of Perfetto's traces: a track for each row below one for its device, and the
// launches on the tracks of their threads, with a flow to what they brought.
// [one thread at a time]
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiler/analyze/profile.h"
#include "profiler/base/hash_map.h"
#include "profiler/write/gpu_timeline.h"
#include "profiler/write/perfetto_packet.h"

namespace pystrobe::write {

/// Profile and packets outlive it. Memory grows by what GpuTimeline has.
class GpuSlices {
 public:
  struct ThreadTrack {
    uint64_t tid = 0;
    uint64_t track = 0;
  };
  struct DeviceTrack {
    uint32_t device = 0;
    uint64_t track = 0;
  };
  /// What others have taken.
  struct Taken {
    uint64_t process_track = 0;
    uint64_t last_track = 0;
    uint32_t last_sequence = 0;
    std::vector<ThreadTrack> threads;
    std::vector<DeviceTrack> devices;
  };

  GpuSlices(const Profile& profile, perfetto::PacketWriter& packets)
      : profile_(profile), tables_(profile.tables()), packets_(packets), timeline_(profile) {}

  const GpuTimeline& timeline() const { return timeline_; }

  /// All of it. The process has its track. What is taken then.
  Taken Write(const Taken& taken);

 private:
  void BeginThread(uint32_t tid);
  void WriteLaunch(const GpuTimeline::Launch& launch);
  void BeginDevice(uint32_t device);
  void BeginRow(const GpuTimeline::Row& row);
  void WriteWork(const GpuTimeline::Work& work);
  void Intern(const GpuTimeline::Work& work, perfetto::Message& packet);
  void WriteEnd(int64_t time_ns);

  const Profile& profile_;
  const Tables& tables_;
  perfetto::PacketWriter& packets_;
  GpuTimeline timeline_;
  Taken taken_;
  HashSet<uint32_t> told_;  // sums whose names the sequence has
};

}  // namespace pystrobe::write
