// SPDX-License-Identifier: Apache-2.0
//
// Packets of Perfetto's traces: the numbers of the fields that we write
// (github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto,
// track_event/*.proto, interned_data/interned_data.proto), and one packet at a time.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "profiler/write/output_buffer.h"

namespace pystrobe::write::perfetto {

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
  kEventAnnotations = 4,
  kEventType = 9,
  kEventName = 10,
  kEventLocation = 34,
  kEventFlows = 47,
  kEventTerminatingFlows = 48,
};
enum DescriptorField : uint32_t {
  kDescriptorUuid = 1,
  kDescriptorName = 2,
  kDescriptorProcess = 3,
  kDescriptorThread = 4,
  kDescriptorParent = 5,
};
enum ProcessField : uint32_t { kProcessPid = 1, kProcessName = 6 };
enum ThreadField : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
enum InternedField : uint32_t {
  kInternedCategories = 1,
  kInternedNames = 2,
  kInternedAnnotationNames = 3,
  kInternedLocations = 4,
  kInternedAnnotationTexts = 29,
};
enum NameField : uint32_t { kNameId = 1, kNameText = 2 };
enum AnnotationField : uint32_t {
  kAnnotationName = 1,
  kAnnotationNumber = 3,
  kAnnotationText = 17,
};
enum LocationField : uint32_t {
  kLocationId = 1,
  kLocationFile = 2,
  kLocationFunction = 3,
  kLocationLine = 4,
};

enum SequenceFlag : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum EventType : int32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };

using Message = protozero::pbf_writer;

/// [one thread at a time] The output outlives it.
class PacketWriter {
 public:
  explicit PacketWriter(OutputBuffer& out) : out_(out) {}

  bool ok() const { return out_.ok(); }

  /// An empty packet, to be filled and then finished.
  Message& Begin() {
    packet_.clear();
    return packet_writer_;
  }
  /// One of a sequence, with its time.
  Message& BeginEvent(int64_t time_ns, uint32_t sequence) {
    Message& packet = Begin();
    packet.add_uint64(kPacketTimestamp, static_cast<uint64_t>(time_ns));
    packet.add_uint32(kPacketSequenceId, sequence);
    packet.add_uint32(kPacketSequenceFlags, kNeedsState);
    return packet;
  }
  /// The first of a sequence, all events of which are of one track.
  Message& BeginSequence(uint32_t sequence, uint64_t track) {
    Message& packet = Begin();
    packet.add_uint32(kPacketSequenceId, sequence);
    packet.add_uint32(kPacketSequenceFlags, kStateCleared);
    Message defaults(packet, kPacketDefaults);
    Message of_events(defaults, kDefaultsTrackEvent);
    of_events.add_uint64(kEventDefaultsTrack, track);
    return packet;
  }
  void Finish() {
    head_.clear();
    Message trace(head_);
    trace.add_message(kTracePacket, packet_);
    out_.Append(head_);
  }

 private:
  OutputBuffer& out_;
  std::string packet_;
  Message packet_writer_{packet_};
  std::string head_;
};

/// What stands for `text` in the events of a sequence.
inline void AddName(Message& interned, InternedField field, uint64_t id, std::string_view text) {
  Message name(interned, field);
  name.add_uint64(kNameId, id);
  name.add_string(kNameText, text.data(), text.size());
}

}  // namespace pystrobe::write::perfetto
