// SPDX-License-Identifier: Apache-2.0
//
// Perfetto's own: a stream of protobuf packets (github.com/google/perfetto, protos/perfetto/trace:
// trace.proto, trace_packet.proto, track_event/*.proto, interned_data/interned_data.proto; the
// field numbers below are its). Each thread is a sequence of packets of its own, so that what they
// all have in common is said once; a call is the begin and the end of a slice.
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "profiler/analyze/spans.h"
#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/utf8.h"

namespace pystrobe::write {
namespace {

enum TraceField : uint32_t { kTracePacket = 1 };
enum PacketField : uint32_t {
  kPacketTimestamp = 8,
  kPacketSequenceId = 10,
  kPacketTrackEvent = 11,
  kPacketInternedData = 12,
  kPacketSequenceFlags = 13,
  kPacketDefaults = 59,
  kPacketTrackDescriptor = 60,
};
enum DefaultsField : uint32_t { kDefaultsTrackEvent = 11 };
enum EventDefaultsField : uint32_t { kEventDefaultsTrack = 11 };
enum EventField : uint32_t {
  kEventCategories = 3,
  kEventType = 9,
  kEventName = 10,
  kEventLocation = 34,
};
enum DescriptorField : uint32_t {
  kDescriptorUuid = 1,
  kDescriptorProcess = 3,
  kDescriptorThread = 4,
  kDescriptorParent = 5,
};
enum ProcessField : uint32_t { kProcessPid = 1, kProcessName = 6 };
enum ThreadField : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
enum InternedField : uint32_t {
  kInternedCategories = 1,
  kInternedNames = 2,
  kInternedLocations = 4
};
enum NameField : uint32_t { kNameId = 1, kNameText = 2 };
enum LocationField : uint32_t {
  kLocationId = 1,
  kLocationFile = 2,
  kLocationFunction = 3,
  kLocationLine = 4,
};

enum SequenceFlag : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum EventType : int32_t { kSliceBegin = 1, kSliceEnd = 2 };

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
    return out_.Finish();
  }

 private:
  using Message = protozero::pbf_writer;

  struct ThreadState {
    bool is_chosen = false;
    std::vector<bool> is_told;  // by FunctionId: the sequence has its name
  };

  void WriteProcess() {
    const Metadata& metadata = profile_.recording->metadata();
    packet_.clear();
    {
      Message descriptor(packet_writer_, kPacketTrackDescriptor);
      descriptor.add_uint64(kDescriptorUuid, kProcessTrack);
      Message process(descriptor, kDescriptorProcess);
      process.add_int32(kProcessPid, static_cast<int32_t>(metadata.pid));
      process.add_string(kProcessName, ValidUtf8(Title(metadata, options_)));
    }
    Finish();
  }

  void WriteThread(ThreadIndex index) {
    threads_[ToIndex(index)].is_chosen = true;
    threads_[ToIndex(index)].is_told.resize(tables_.function_count());
    const Thread& thread = tables_.thread(index);
    packet_.clear();
    packet_writer_.add_uint32(kPacketSequenceId, SequenceOf(index));
    packet_writer_.add_uint32(kPacketSequenceFlags, kStateCleared);
    {
      Message defaults(packet_writer_, kPacketDefaults);
      Message of_events(defaults, kDefaultsTrackEvent);
      of_events.add_uint64(kEventDefaultsTrack, TrackOf(index));
    }
    {
      Message descriptor(packet_writer_, kPacketTrackDescriptor);
      descriptor.add_uint64(kDescriptorUuid, TrackOf(index));
      descriptor.add_uint64(kDescriptorParent, kProcessTrack);
      Message of_thread(descriptor, kDescriptorThread);
      of_thread.add_int32(kThreadPid, static_cast<int32_t>(profile_.recording->metadata().pid));
      of_thread.add_int64(kThreadTid, static_cast<int64_t>(thread.tid));
      of_thread.add_string(kThreadName, ValidUtf8(tables_.text(thread.name)));
    }
    {
      Message interned(packet_writer_, kPacketInternedData);
      Message category(interned, kInternedCategories);
      category.add_uint64(kNameId, kCategory);
      category.add_string(kNameText, "python");
    }
    Finish();
  }

  void WriteEdge(const Span& span, bool begins) {
    ThreadState& thread = threads_[ToIndex(span.thread)];
    if (!thread.is_chosen || !out_.ok()) return;
    packet_.clear();
    packet_writer_.add_uint64(kPacketTimestamp,
                              static_cast<uint64_t>(begins ? span.begin_ns : span.end_ns));
    packet_writer_.add_uint32(kPacketSequenceId, SequenceOf(span.thread));
    packet_writer_.add_uint32(kPacketSequenceFlags, kNeedsState);
    const FunctionId function = tables_.frame(tables_.stack(span.stack).frame).function;
    if (begins && !thread.is_told[ToIndex(function)]) {
      thread.is_told[ToIndex(function)] = true;
      Intern(function);
    }
    {
      Message event(packet_writer_, kPacketTrackEvent);
      event.add_enum(kEventType, begins ? kSliceBegin : kSliceEnd);
      if (begins) {
        event.add_uint64(kEventCategories, kCategory);
        event.add_uint64(kEventName, IdOf(function));
        event.add_uint64(kEventLocation, IdOf(function));
      }
    }
    Finish();
  }

  // 0 is none.
  static uint64_t IdOf(FunctionId function) { return uint64_t{ToIndex(function)} + 1; }

  void Intern(FunctionId id) {
    const Function& function = tables_.function(id);
    const std::string name = ValidUtf8(FunctionName(function, tables_));
    Message interned(packet_writer_, kPacketInternedData);
    {
      Message event_name(interned, kInternedNames);
      event_name.add_uint64(kNameId, IdOf(id));
      event_name.add_string(kNameText, name);
    }
    Message location(interned, kInternedLocations);
    location.add_uint64(kLocationId, IdOf(id));
    location.add_string(kLocationFile, ValidUtf8(tables_.text(function.file)));
    location.add_string(kLocationFunction, name);
    location.add_uint32(kLocationLine, function.first_line);
  }

  void Finish() {
    head_.clear();
    Message trace(head_);
    trace.add_message(kTracePacket, packet_);
    out_.Append(head_);
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  std::vector<ThreadState> threads_;  // by ThreadIndex
  std::string packet_;
  Message packet_writer_{packet_};
  std::string head_;
};

}  // namespace

Result<void> WritePerfetto(const Profile& profile, const WriteOptions& options, Output& output) {
  return PerfettoWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
