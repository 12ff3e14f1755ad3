// SPDX-License-Identifier: Apache-2.0
//
// Perfetto's own: a stream of protobuf packets (perfetto_packet.h). Each thread is a sequence of
// packets of its own, so that what they all have in common is said once; a call is the begin and
// the end of a slice. What a GPU did, and ranges that the program named, come last.
#include <string>
#include <vector>

#include "profiler/analyze/spans.h"
#include "profiler/write/gpu_slices.h"
#include "profiler/write/labels.h"
#include "profiler/write/perfetto_packet.h"
#include "profiler/write/range_slices.h"
#include "profiler/write/utf8.h"

namespace pystrobe::write {
namespace {

using namespace perfetto;

constexpr uint64_t kCategory = 1;
constexpr uint64_t kProcessTrack = 1;

uint64_t TrackOf(ThreadIndex thread) { return kProcessTrack + 1 + ToIndex(thread); }
uint32_t SequenceOf(ThreadIndex thread) { return ToIndex(thread) + 1; }

class PerfettoWriter {
 public:
  PerfettoWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        threads_(tables_.thread_count()) {}

  Result<void> Run() {
    WriteProcess();
    for (const ThreadProfile& thread : profile_.threads) WriteThread(thread.thread);
    auto read = ForEachEdge(
        *profile_.recording, [this](const Span& span, bool begins) { WriteEdge(span, begins); },
        RangeOf(profile_));
    if (!read) return read;
    WriteGpu();
    return out_.Finish();
  }

 private:
  struct ThreadState {
    bool is_chosen = false;
    std::vector<bool> is_told;  // by FunctionId: the sequence has its name
  };

  void WriteProcess() {
    const Metadata& metadata = profile_.recording->metadata();
    {
      Message descriptor(packets_.Begin(), kPacketTrackDescriptor);
      descriptor.add_uint64(kDescriptorUuid, kProcessTrack);
      Message process(descriptor, kDescriptorProcess);
      process.add_int32(kProcessPid, static_cast<int32_t>(metadata.pid));
      process.add_string(kProcessName, ValidUtf8(Title(metadata, options_)));
    }
    packets_.Finish();
  }

  void WriteThread(ThreadIndex index) {
    threads_[ToIndex(index)].is_chosen = true;
    threads_[ToIndex(index)].is_told.resize(tables_.function_count());
    const Thread& thread = tables_.thread(index);
    Message& packet = packets_.BeginSequence(SequenceOf(index), TrackOf(index));
    {
      Message descriptor(packet, kPacketTrackDescriptor);
      descriptor.add_uint64(kDescriptorUuid, TrackOf(index));
      descriptor.add_uint64(kDescriptorParent, kProcessTrack);
      Message of_thread(descriptor, kDescriptorThread);
      of_thread.add_int32(kThreadPid, static_cast<int32_t>(profile_.recording->metadata().pid));
      of_thread.add_int64(kThreadTid, static_cast<int64_t>(thread.tid));
      of_thread.add_string(kThreadName, ValidUtf8(tables_.text(thread.name)));
    }
    {
      Message interned(packet, kPacketInternedData);
      AddName(interned, kInternedCategories, kCategory, "python");
    }
    packets_.Finish();
  }

  void WriteEdge(const Span& span, bool begins) {
    ThreadState& thread = threads_[ToIndex(span.thread)];
    if (!thread.is_chosen || !out_.ok()) return;
    Message& packet =
        packets_.BeginEvent(begins ? span.begin_ns : span.end_ns, SequenceOf(span.thread));
    const FunctionId function = tables_.frame(tables_.stack(span.stack).frame).function;
    if (begins && !thread.is_told[ToIndex(function)]) {
      thread.is_told[ToIndex(function)] = true;
      Intern(function, packet);
    }
    {
      Message event(packet, kPacketTrackEvent);
      event.add_enum(kEventType, begins ? kSliceBegin : kSliceEnd);
      if (begins) {
        event.add_uint64(kEventCategories, kCategory);
        event.add_uint64(kEventName, IdOf(function));
        event.add_uint64(kEventLocation, IdOf(function));
      }
    }
    packets_.Finish();
  }

  // 0 is none.
  static uint64_t IdOf(FunctionId function) { return uint64_t{ToIndex(function)} + 1; }

  void Intern(FunctionId id, Message& packet) {
    const Function& function = tables_.function(id);
    const std::string name = ValidUtf8(FunctionName(function, tables_));
    Message interned(packet, kPacketInternedData);
    AddName(interned, kInternedNames, IdOf(id), name);
    Message location(interned, kInternedLocations);
    location.add_uint64(kLocationId, IdOf(id));
    location.add_string(kLocationFile, ValidUtf8(tables_.text(function.file)));
    location.add_string(kLocationFunction, name);
    location.add_uint32(kLocationLine, function.first_line);
  }

  void WriteGpu() {
    const auto threads = static_cast<uint32_t>(tables_.thread_count());
    GpuSlices::Taken taken{.process_track = kProcessTrack,
                           .last_track = TrackOf(ThreadIndex{threads}),
                           .last_sequence = SequenceOf(ThreadIndex{threads})};
    for (const ThreadProfile& thread : profile_.threads) {
      taken.threads.push_back({tables_.thread(thread.thread).tid, TrackOf(thread.thread)});
    }
    GpuSlices gpu(profile_, packets_);
    taken = gpu.Write(taken);
    RangeSlices(profile_, gpu.timeline(), packets_).Write(taken);
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  PacketWriter packets_{out_};
  std::vector<ThreadState> threads_;  // by ThreadIndex
};

}  // namespace

Result<void> WritePerfetto(const Profile& profile, const WriteOptions& options, Output& output) {
  return PerfettoWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
