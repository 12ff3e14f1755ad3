// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gpu_slices.h"

#include <algorithm>
#include <optional>

#include "profiler/write/utf8.h"

namespace pystrobe::write {
namespace {

using namespace perfetto;

/// Ids of a row's sequence that are the same in all of them.
enum AnnotationId : uint64_t { kStackId = 1, kStreamId = 2, kLaunchId = 3, kBytesId = 4 };

uint64_t CategoryId(GpuWorkKind kind) { return static_cast<uint64_t>(kind) + 1; }
uint64_t LaunchNameId(GpuWorkKind kind, bool is_graph) { return is_graph ? 4 : CategoryId(kind); }
// 0 is none.
uint64_t IdOf(uint32_t sum) { return uint64_t{sum} + 1; }

void AddNumber(Message& event, AnnotationId name, uint64_t number) {
  Message annotation(event, kEventAnnotations);
  annotation.add_uint64(kAnnotationName, name);
  annotation.add_uint64(kAnnotationNumber, number);
}

}  // namespace

GpuSlices::Taken GpuSlices::Write(const Taken& taken) {
  taken_ = taken;
  std::optional<uint32_t> thread;
  timeline_.ForEachLaunch([&](const GpuTimeline::Launch& launch) {
    if (!packets_.ok()) return;
    if (thread != launch.tid) BeginThread(launch.tid);
    thread = launch.tid;
    WriteLaunch(launch);
  });
  std::optional<size_t> last_row;
  timeline_.ForEachWork([&](const GpuTimeline::Work& work, size_t row) {
    if (!packets_.ok()) return;
    const std::vector<GpuTimeline::Row>& rows = timeline_.rows();
    if (!last_row || rows[*last_row].device != rows[row].device) BeginDevice(rows[row].device);
    if (last_row != row) BeginRow(rows[row]);
    last_row = row;
    WriteWork(work);
  });
  return taken_;
}

void GpuSlices::BeginThread(uint32_t tid) {
  const auto known = std::ranges::find(taken_.threads, tid, &ThreadTrack::tid);
  const bool is_known = known != taken_.threads.end();
  const uint64_t track = is_known ? known->track : ++taken_.last_track;
  if (!is_known) taken_.threads.push_back({tid, track});
  Message& packet = packets_.BeginSequence(++taken_.last_sequence, track);
  if (!is_known) {
    Message descriptor(packet, kPacketTrackDescriptor);
    descriptor.add_uint64(kDescriptorUuid, track);
    descriptor.add_uint64(kDescriptorParent, taken_.process_track);
    Message thread(descriptor, kDescriptorThread);
    thread.add_int32(kThreadPid, static_cast<int32_t>(profile_.recording->metadata().pid));
    thread.add_int64(kThreadTid, tid);
    thread.add_string(kThreadName, ValidUtf8(LaunchingThreadName(tables_, tid)));
  }
  {
    Message interned(packet, kPacketInternedData);
    AddName(interned, kInternedCategories, 1, "cuda_driver");
    for (const auto kind : {GpuWorkKind::kKernel, GpuWorkKind::kCopy, GpuWorkKind::kSet}) {
      AddName(interned, kInternedNames, LaunchNameId(kind, false), LaunchName(kind, false));
    }
    AddName(interned, kInternedNames, LaunchNameId(GpuWorkKind::kKernel, true),
            LaunchName(GpuWorkKind::kKernel, true));
  }
  packets_.Finish();
}

void GpuSlices::WriteLaunch(const GpuTimeline::Launch& launch) {
  Message& packet = packets_.BeginEvent(launch.time_ns, taken_.last_sequence);
  {
    Message event(packet, kPacketTrackEvent);
    event.add_enum(kEventType, kInstant);
    event.add_uint64(kEventCategories, 1);
    event.add_uint64(kEventName, LaunchNameId(launch.kernel.kind, launch.works > 1));
    event.add_fixed64(kEventFlows, launch.number);
  }
  packets_.Finish();
}

void GpuSlices::BeginDevice(uint32_t device) {
  taken_.devices.push_back({device, ++taken_.last_track});
  {
    Message descriptor(packets_.Begin(), kPacketTrackDescriptor);
    descriptor.add_uint64(kDescriptorUuid, taken_.last_track);
    descriptor.add_string(kDescriptorName, ValidUtf8(DeviceName(*profile_.recording, device)));
  }
  packets_.Finish();
}

void GpuSlices::BeginRow(const GpuTimeline::Row& row) {
  told_.clear();
  const uint64_t track = ++taken_.last_track;
  Message& packet = packets_.BeginSequence(++taken_.last_sequence, track);
  {
    Message descriptor(packet, kPacketTrackDescriptor);
    descriptor.add_uint64(kDescriptorUuid, track);
    descriptor.add_uint64(kDescriptorParent, taken_.devices.back().track);
    descriptor.add_string(kDescriptorName, RowName(row));
  }
  {
    Message interned(packet, kPacketInternedData);
    for (const auto kind : {GpuWorkKind::kKernel, GpuWorkKind::kCopy, GpuWorkKind::kSet}) {
      AddName(interned, kInternedCategories, CategoryId(kind), GpuCategory(kind));
    }
    AddName(interned, kInternedAnnotationNames, kStackId, "python stack");
    AddName(interned, kInternedAnnotationNames, kStreamId, "stream");
    AddName(interned, kInternedAnnotationNames, kLaunchId, "correlation");
    AddName(interned, kInternedAnnotationNames, kBytesId, "bytes");
  }
  packets_.Finish();
}

void GpuSlices::WriteWork(const GpuTimeline::Work& work) {
  Message& packet = packets_.BeginEvent(work.begin_ns, taken_.last_sequence);
  if (told_.insert(work.span.sum).second) Intern(work, packet);
  {
    Message event(packet, kPacketTrackEvent);
    event.add_enum(kEventType, kSliceBegin);
    event.add_uint64(kEventCategories, CategoryId(work.kernel.kind));
    event.add_uint64(kEventName, IdOf(work.span.sum));
    if (work.has_launch) event.add_fixed64(kEventTerminatingFlows, work.launch);
    AddNumber(event, kStreamId, work.sum.stream);
    if (work.launch != 0) AddNumber(event, kLaunchId, work.launch);
    if (work.kernel.kind != GpuWorkKind::kKernel) AddNumber(event, kBytesId, work.span.bytes);
    if (work.sum.stack != kEmptyStack) {
      Message annotation(event, kEventAnnotations);
      annotation.add_uint64(kAnnotationName, kStackId);
      annotation.add_uint64(kAnnotationText, IdOf(work.span.sum));
    }
  }
  packets_.Finish();
  WriteEnd(work.end_ns);
}

void GpuSlices::Intern(const GpuTimeline::Work& work, Message& packet) {
  Message interned(packet, kPacketInternedData);
  AddName(interned, kInternedNames, IdOf(work.span.sum), ValidUtf8(tables_.text(work.kernel.name)));
  if (work.sum.stack == kEmptyStack) return;
  AddName(interned, kInternedAnnotationTexts, IdOf(work.span.sum),
          ValidUtf8(StackText(work.sum.stack, tables_)));
}

void GpuSlices::WriteEnd(int64_t time_ns) {
  {
    Message event(packets_.BeginEvent(time_ns, taken_.last_sequence), kPacketTrackEvent);
    event.add_enum(kEventType, kSliceEnd);
  }
  packets_.Finish();
}

}  // namespace pystrobe::write
