// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/range_slices.h"

#include <algorithm>

#include "profiler/write/utf8.h"

namespace pystrobe::write {
namespace {

using namespace perfetto;

constexpr uint64_t kCategory = 1;
constexpr uint64_t kDomainName = 1;

// 0 is none.
uint64_t IdOf(StringId text) { return uint64_t{ToIndex(text)} + 1; }

}  // namespace

void RangeSlices::Write(const GpuSlices::Taken& taken) {
  taken_ = taken;
  for (const auto& thread : taken.threads) thread_tracks_.emplace(thread.tid, thread.track);
  std::optional<size_t> last_row;
  timeline_.ForEachSlice([&](const RangeTimeline::Slice& slice, size_t row) {
    if (!packets_.ok()) return;
    if (last_row != row) {
      WriteEnds({});
      BeginRow(timeline_.rows()[row]);
    }
    last_row = row;
    WriteEnds(slice.begin_ns);
    WriteBegin(slice);
    open_.push_back(slice.end_ns);
  });
  WriteEnds({});
}

void RangeSlices::BeginRow(const RangeTimeline::Row& row) {
  told_names_.clear();
  told_domains_.clear();
  const bool is_thread = !row.is_stream && row.lane == 0;
  const uint64_t track = is_thread ? TrackOfThread(row.tid) : ++taken_.last_track;
  const uint64_t parent = row.is_stream ? TrackOfDevice(row.device) : TrackOfThread(row.tid);
  Message& packet = packets_.BeginSequence(++taken_.last_sequence, track);
  if (!is_thread) {
    Message descriptor(packet, kPacketTrackDescriptor);
    descriptor.add_uint64(kDescriptorUuid, track);
    descriptor.add_uint64(kDescriptorParent, parent);
    descriptor.add_string(kDescriptorName, ValidUtf8(RangeRowName(row, tables_)));
  }
  {
    Message interned(packet, kPacketInternedData);
    AddName(interned, kInternedCategories, kCategory,
            row.is_stream ? "gpu_user_annotation" : "user_annotation");
    AddName(interned, kInternedAnnotationNames, kDomainName, "domain");
  }
  packets_.Finish();
}

uint64_t RangeSlices::TrackOfThread(uint32_t tid) {
  const auto known = thread_tracks_.find(tid);
  if (known != thread_tracks_.end()) return known->second;
  const uint64_t track = ++taken_.last_track;
  thread_tracks_.emplace(tid, track);
  {
    Message descriptor(packets_.Begin(), kPacketTrackDescriptor);
    descriptor.add_uint64(kDescriptorUuid, track);
    descriptor.add_uint64(kDescriptorParent, taken_.process_track);
    Message thread(descriptor, kDescriptorThread);
    thread.add_int32(kThreadPid, static_cast<int32_t>(profile_.recording->metadata().pid));
    thread.add_int64(kThreadTid, tid);
    thread.add_string(kThreadName, ValidUtf8(LaunchingThreadName(tables_, tid)));
  }
  packets_.Finish();
  return track;
}

uint64_t RangeSlices::TrackOfDevice(uint32_t device) const {
  return std::ranges::find(taken_.devices, device, &GpuSlices::DeviceTrack::device)->track;
}

void RangeSlices::WriteBegin(const RangeTimeline::Slice& slice) {
  const NamedRange& range = profile_.recording->ranges()->ranges[slice.range];
  Message& packet = packets_.BeginEvent(slice.begin_ns, taken_.last_sequence);
  Intern(range, packet);
  {
    Message event(packet, kPacketTrackEvent);
    event.add_enum(kEventType, kSliceBegin);
    event.add_uint64(kEventCategories, kCategory);
    event.add_uint64(kEventName, IdOf(range.name));
    if (range.domain != kEmptyString) {
      Message annotation(event, kEventAnnotations);
      annotation.add_uint64(kAnnotationName, kDomainName);
      annotation.add_uint64(kAnnotationText, IdOf(range.domain));
    }
  }
  packets_.Finish();
}

void RangeSlices::WriteEnds(std::optional<int64_t> until_ns) {
  while (!open_.empty() && (!until_ns || open_.back() <= *until_ns)) {
    {
      Message event(packets_.BeginEvent(open_.back(), taken_.last_sequence), kPacketTrackEvent);
      event.add_enum(kEventType, kSliceEnd);
    }
    packets_.Finish();
    open_.pop_back();
  }
}

void RangeSlices::Intern(const NamedRange& range, Message& packet) {
  const bool is_new = told_names_.insert(ToIndex(range.name)).second;
  const bool domain_is_new =
      range.domain != kEmptyString && told_domains_.insert(ToIndex(range.domain)).second;
  if (!is_new && !domain_is_new) return;
  Message interned(packet, kPacketInternedData);
  if (is_new) {
    AddName(interned, kInternedNames, IdOf(range.name), ValidUtf8(tables_.text(range.name)));
  }
  if (domain_is_new) {
    AddName(interned, kInternedAnnotationTexts, IdOf(range.domain),
            ValidUtf8(tables_.text(range.domain)));
  }
}

}  // namespace pystrobe::write
