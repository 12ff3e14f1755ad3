// SPDX-License-Identifier: Apache-2.0
//
// A GPU's work in the formats of timelines. What their own readers make of them is tested end to
// end.
#include "profiler/write/gpu_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_reader.hpp>

#include "profiler/write/perfetto_packet.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using testing::AddGpuSpans;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeGpuExample;
using testing::MemoryRecording;
using ::testing::Not;
using testing::Written;
using testing::WrittenExample;

constexpr int64_t kStart = 1'000'000'000;

/// Work of one kernel on stream 7, of these times since the start.
MemoryRecording RecordingOf(std::vector<GpuSpan> spans) {
  MemoryRecording recording;
  recording.mutable_metadata().start_monotonic_ns = kStart;
  recording.mutable_metadata().pause_mode = kOfGpu;
  recording.mutable_quality().duration_ns = 1'000'000;
  GpuRecord gpu;
  gpu.kernels = {
      testing::MakeGpuKernel(recording.mutable_tables(), GpuWorkKind::kKernel, "k()", "k")};
  gpu.sums = {{.stream = 7, .count = 1}, {.device = 1, .stream = 7, .count = 1}};
  for (GpuSpan& span : spans) {
    span.begin_ns += kStart;
    span.end_ns += kStart;
    if (span.launch_ns != 0) span.launch_ns += kStart;
  }
  gpu.spans = std::move(spans);
  recording.SetGpu(std::move(gpu));
  return recording;
}

struct Seen {
  std::vector<std::string> rows;
  std::vector<std::string> launches;
};

Seen See(const RecordingSource& recording, const FoldOptions& options = {}) {
  const auto profile = Fold(recording, options);
  EXPECT_TRUE(profile);
  const GpuTimeline timeline(*profile);
  Seen seen;
  for (const GpuTimeline::Row& row : timeline.rows()) {
    seen.rows.push_back(fmt::format("{}: {}:", row.device, RowName(row)));
  }
  timeline.ForEachWork([&](const GpuTimeline::Work& work, size_t row) {
    seen.rows[row] += fmt::format(" {}-{}#{}", work.begin_ns, work.end_ns, work.launch);
    if (!work.has_launch) seen.rows[row] += "?";
  });
  timeline.ForEachLaunch([&](const GpuTimeline::Launch& launch) {
    seen.launches.push_back(
        fmt::format("{}: #{} {} x{}", launch.tid, launch.number, launch.time_ns, launch.works));
  });
  return seen;
}

TEST(GpuTimelineTest, WhatOverlapsHasARowOfItsOwn) {
  const Seen seen = See(RecordingOf({{10, 20},
                                     {20, 30},        // at once
                                     {25, 26},        // within another
                                     {29, 40},        // across its end
                                     {28, 50},        // and a third
                                     {35, 36, 1, 0},  // on another device
                                     {41, 41},        // takes no time
                                     {41, 60},
                                     {51, 52}}));
  EXPECT_THAT(seen.rows, ElementsAre("0: stream 7: 10-20#0? 20-30#0? 41-41#0? 41-60#0?",
                                     "0: stream 7 (2): 25-26#0? 28-50#0? 51-52#0?",
                                     "0: stream 7 (3): 29-40#0?", "1: stream 7: 35-36#0?"));
}

TEST(GpuTimelineTest, ALaunchIsOneOfAThreadAtATime) {
  const Seen seen = See(RecordingOf({{10, 20, 0, 5, 3},
                                     {20, 30, 0, 5, 4},
                                     {30, 40, 0, 5, 3},
                                     {40, 50, 0, 6, 3},
                                     {50, 60, 0, 0, 0},
                                     {60, 70, 0, 5, 1}}));
  EXPECT_THAT(seen.launches, ElementsAre("5: #1 1 x1", "5: #2 3 x2", "5: #3 4 x1", "6: #4 3 x1"));
  EXPECT_THAT(seen.rows, ElementsAre("0: stream 7: 10-20#2 20-30#3 30-40#2 40-50#4 50-60#0? "
                                     "60-70#1"));
}

TEST(GpuTimelineTest, OfAPartIsCutAtItsEnds) {
  const MemoryRecording recording =
      RecordingOf({{10, 20, 0, 5, 1}, {90, 110, 0, 5, 80}, {150, 300, 0, 5, 120}, {301, 302}});
  const Seen seen = See(recording, {.since_ns = 100, .until_ns = 200});
  EXPECT_THAT(seen.rows, ElementsAre("0: stream 7: 100-110#1? 150-200#2"));
  EXPECT_THAT(seen.launches, ElementsAre("5: #2 120 x1"));
  const Seen whole = See(RecordingOf({{-20, -10}, {-5, 10, 0, 5, -7}, {999'999, 1'000'100}}));
  EXPECT_THAT(whole.rows, ElementsAre("0: stream 7: 0-10#1? 999999-1000100#0?"));
}

TEST(GpuTimelineTest, TellsTheInnermostFramesOfAStack) {
  Tables tables;
  StackId stack = testing::MakeStack(
      tables, {{"main", 3, "/x/a.py"}, {"f;", 7, "/v/lib/python3.12/site-packages/p/b.py"}});
  EXPECT_EQ(StackText(stack, tables), "main (/x/a.py:3);f; (p/b.py:7)");
  EXPECT_EQ(StackText(kEmptyStack, tables), "");
  for (int i = 0; i < 62; ++i) stack = tables.Push(stack, tables.stack(stack).frame);
  EXPECT_THAT(StackText(stack, tables), ::testing::StartsWith("main (/x/a.py:3);f;"));
  stack = tables.Push(stack, tables.stack(stack).frame);
  EXPECT_THAT(StackText(stack, tables), ::testing::StartsWith("[more frames];f; (p/b.py:7);"));
}

TEST(GpuTimelineTest, NamesThreadsThatLaunchedAsFarAsTheyAreKnown) {
  Tables tables;
  testing::MakeThread(tables, 4, "");
  testing::MakeThread(tables, 5, "worker");
  EXPECT_EQ(LaunchingThreadName(tables, 5), "worker");
  EXPECT_EQ(LaunchingThreadName(tables, 4), "thread 4");
  EXPECT_EQ(LaunchingThreadName(tables, 6), "thread 6");
}

TEST(TraceEventsTest, HaveTheFieldsOfKineto) {
  const std::string text = WrittenExample(WriteTraceEvents, "gpu-timeline");
  const char* const head =
      R"~({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100","numSms":132}],)~"
      R"~("baseTimeNanoseconds":1700000000000000000,"displayTimeUnit":"ms",)~";
  EXPECT_TRUE(text.starts_with(head)) << text.substr(0, 300);
  const char* const kernel =
      R"~({"ph":"X","cat":"kernel","name":"void gemm<float, 128>(float*, int)","pid":0,"tid":7,)~"
      R"~("ts":100.000,"dur":600.032,"args":{"device":0,"stream":7,"correlation":2,)~"
      R"~("registers per thread":64,"shared memory":4096,"grid":[264,1,1],"block":[256,1,1],)~"
      R"~("blocks per SM":2,"warps per SM":16,)~"
      R"~("theoretical occupancy %":50,"python stack":)~"
      R"~("<module> (app.py:30);train (app.py:12);step (app.py:5)"}},)~"
      "\n"
      R"~({"ph":"f","bp":"e","id":2,"pid":0,"tid":7,"ts":100.000,"cat":"ac2g","name":"ac2g"},)~";
  EXPECT_THAT(text, HasSubstr(kernel));
  const char* const copy = R"~("cat":"gpu_memcpy","name":"copy to the device","pid":0,"tid":13,)~"
                           R"~("ts":2020.000,"dur":1500.032,"args":{"device":0,"stream":13,)~"
                           R"~("correlation":4,"bytes":1000,"memory bandwidth (GB/s)":0.000666)~";
  EXPECT_THAT(text, HasSubstr(copy));
  const char* const set =
      R"~({"ph":"X","cat":"gpu_memset","name":"set","pid":0,"tid":1000007,"ts":300.000,)~"
      R"~("dur":1.032,"args":{"device":0,"stream":7,"bytes":0,"memory bandwidth (GB/s)":0}},)~";
  EXPECT_THAT(text, HasSubstr(set)) << "on a row of its own, without a launch";
  const char* const launch =
      R"~({"ph":"X","cat":"cuda_driver","name":"cuGraphLaunch","pid":4242,"tid":4242,)~"
      R"~("ts":2050.007,"dur":0,"args":{"correlation":5}},)~"
      "\n"
      R"~({"ph":"s","id":5,"pid":4242,"tid":4242,"ts":2050.007,)~";
  EXPECT_THAT(text, HasSubstr(launch));
  for (const char* row : {"stream 7 ", "stream 7 (2) ", "stream 13 "}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\"args\":{{\"name\":\"{}\"}}", row)));
  }
}

TEST(TraceEventsTest, WithoutAGpuHaveNothingOfOne) {
  MemoryRecording recording;
  ASSERT_TRUE(testing::FillExample("calls", recording));
  const std::string text = Written(WriteTraceEvents, recording);
  EXPECT_THAT(text, HasSubstr(R"({"displayTimeUnit":"ns","otherData")"));
  EXPECT_THAT(text, Not(HasSubstr("process_labels")));
}

/// What a trace of Perfetto has, in words: events with the names of their tracks.
class PerfettoEvents {
 public:
  explicit PerfettoEvents(const std::string& trace) {
    for (Reader all(trace); all.next(perfetto::kTracePacket);) ReadPacket(all.get_message());
  }

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  using Reader = protozero::pbf_reader;

  void ReadPacket(Reader packet) {
    time_ = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case perfetto::kPacketTimestamp:
          time_ = packet.get_uint64();
          break;
        case perfetto::kPacketSequenceId:
          sequence_ = packet.get_uint32();
          break;
        case perfetto::kPacketTrackDescriptor:
          ReadTrack(packet.get_message());
          break;
        case perfetto::kPacketInternedData:
          ReadNames(packet.get_message());
          break;
        case perfetto::kPacketTrackEvent:
          ReadEvent(packet.get_message());
          break;
        default:
          packet.skip();
      }
    }
  }

  void ReadTrack(Reader track) {
    uint64_t uuid = 0;
    std::string name, parent;
    while (track.next()) {
      if (track.tag() == perfetto::kDescriptorUuid) {
        uuid = track.get_uint64();
      } else if (track.tag() == perfetto::kDescriptorName) {
        name = track.get_string();
      } else if (track.tag() == perfetto::kDescriptorParent) {
        parent = tracks_[track.get_uint64()];
      } else {
        track.skip();
      }
    }
    tracks_[uuid] = parent.empty() ? name : parent + "/" + name;
    track_of_[sequence_] = tracks_[uuid];
  }

  void ReadNames(Reader interned) {
    while (interned.next()) {
      Reader name = interned.get_message();
      if (interned.tag() != perfetto::kInternedNames || !name.next(perfetto::kNameId)) continue;
      const uint64_t id = name.get_uint64();
      if (name.next(perfetto::kNameText)) names_[{sequence_, id}] = name.get_string();
    }
  }

  void ReadEvent(Reader event) {
    std::string& text = texts_.emplace_back(fmt::format("{}: {}", track_of_[sequence_], time_));
    while (event.next()) {
      if (event.tag() == perfetto::kEventType) {
        text += event.get_enum() == perfetto::kSliceEnd ? " end" : "";
      } else if (event.tag() == perfetto::kEventName) {
        text += " " + names_[{sequence_, event.get_uint64()}];
      } else if (event.tag() == perfetto::kEventFlows) {
        text += fmt::format(" to {}", event.get_fixed64());
      } else if (event.tag() == perfetto::kEventTerminatingFlows) {
        text += fmt::format(" from {}", event.get_fixed64());
      } else {
        event.skip();
      }
    }
  }

  uint64_t time_ = 0;
  uint32_t sequence_ = 0;
  std::map<uint64_t, std::string> tracks_;
  std::map<uint32_t, std::string> track_of_;
  std::map<std::pair<uint32_t, uint64_t>, std::string> names_;
  std::vector<std::string> texts_;
};

TEST(PerfettoTest, HasATrackForEachRowAndFlowsFromTheLaunches) {
  const MemoryRecording recording = RecordingOf({{10, 20, 0, 5, 1}, {15, 30, 0, 5, 1}, {20, 31}});
  EXPECT_THAT(
      PerfettoEvents(Written(WritePerfetto, recording)).texts(),
      ElementsAre(": 1 cuGraphLaunch to 1", "GPU 0/stream 7: 10 k() from 1",
                  "GPU 0/stream 7: 20 end", "GPU 0/stream 7: 20 k()", "GPU 0/stream 7: 31 end",
                  "GPU 0/stream 7 (2): 15 k() from 1", "GPU 0/stream 7 (2): 30 end"));
}

TEST(TimelineTest, SumsOfAGpuAloneAreRefused) {
  MemoryRecording recording = RecordingOf({});
  const auto error_of = [&recording] {
    const auto profile = Fold(recording, {});
    testing::StringOutput output;
    const auto written = Write(Format::kTraceEvents, *profile, {}, output);
    return written ? Error{} : written.error();
  };
  EXPECT_THAT(error_of().hint, HasSubstr("Profiler(gpu=True, timeline=True)"));
  EXPECT_EQ(error_of().code, ErrorCode::kInvalidArgument);
  recording = RecordingOf({{10, 20}});
  EXPECT_EQ(error_of().message, "");
}

}  // namespace
}  // namespace pystrobe::write
