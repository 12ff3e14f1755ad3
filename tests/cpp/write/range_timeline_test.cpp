// SPDX-License-Identifier: Apache-2.0
//
// Ranges in the formats of timelines. What their own readers make of them is tested end to end.
#include "profiler/write/range_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MemoryRecording;
using ::testing::Not;
using testing::WrittenExample;

constexpr int64_t kStart = 1'000'000'000;

/// Ranges "0", "1" and so on, open at these times since the start; works of streams 7, of sum 0,
/// and 8, of sum 1.
MemoryRecording RecordingOf(std::vector<RangeSpan> spans, std::vector<GpuSpan> works = {}) {
  MemoryRecording recording;
  recording.mutable_metadata().start_monotonic_ns = kStart;
  recording.mutable_metadata().pause_mode = kOfGpu;
  recording.mutable_quality().duration_ns = 1'000'000;
  Tables& tables = recording.mutable_tables();
  GpuRecord gpu;
  gpu.kernels = {testing::MakeGpuKernel(tables, GpuWorkKind::kKernel, "k()", "k")};
  gpu.sums = {{.stream = 7, .count = 1}, {.stream = 8, .count = 1}};
  for (GpuSpan& work : works) {
    work.begin_ns += kStart;
    work.end_ns += kStart;
    work.launch_ns += kStart;
  }
  gpu.spans = std::move(works);
  recording.SetGpu(std::move(gpu));
  RangeRecord ranges;
  for (RangeSpan& span : spans) {
    span.begin_ns += kStart;
    span.end_ns += kStart;
    while (ranges.ranges.size() <= span.range) {
      ranges.ranges.push_back({.name = tables.Intern(fmt::format("{}", ranges.ranges.size()))});
    }
  }
  ranges.spans = std::move(spans);
  recording.SetRanges(std::move(ranges));
  return recording;
}

std::vector<std::string> RowsOf(const RecordingSource& recording, bool with_work = true,
                                const FoldOptions& options = {}) {
  const auto profile = Fold(recording, options);
  EXPECT_TRUE(profile);
  const GpuTimeline gpu(*profile);
  const RangeTimeline timeline(*profile, gpu, with_work);
  std::vector<std::string> rows;
  for (const RangeTimeline::Row& row : timeline.rows()) {
    rows.push_back(row.lane > 0    ? RangeRowName(row, recording.tables())
                   : row.is_stream ? fmt::format("stream {}", row.stream)
                                   : fmt::format("{}", row.tid));
    rows.back() += ":";
  }
  timeline.ForEachSlice([&](const RangeTimeline::Slice& slice, size_t row) {
    rows[row] += fmt::format(" {}[{}-{}]", slice.range, slice.begin_ns, slice.end_ns);
  });
  EXPECT_EQ(timeline.left_out(), 0);
  return rows;
}

TEST(RangeTimelineTest, NestsWhatIsWithinEachOther) {
  EXPECT_THAT(
      RowsOf(RecordingOf(
          {{20, 30, 1, 5}, {30, 40, 2, 5}, {10, 50, 0, 5}, {50, 50, 1, 5}, {15, 25, 0, 6}})),
      ElementsAre("5: 0[10-50] 1[20-30] 2[30-40] 1[50-50]", "6: 0[15-25]"));
}

TEST(RangeTimelineTest, OfEqualOnesTheFirstIsAround) {
  EXPECT_THAT(RowsOf(RecordingOf({{10, 20, 1, 5}, {10, 20, 0, 5}, {10, 15, 2, 5}})),
              ElementsAre("5: 0[10-20] 1[10-20] 2[10-15]"));
}

TEST(RangeTimelineTest, WhatOverlapsHasARowOfItsOwn) {
  EXPECT_THAT(RowsOf(RecordingOf({{0, 100, 0, 5},
                                  {50, 250, 1, 5},      // across its end
                                  {60, 70, 2, 5},       // within both: stays in the first row
                                  {90, 110, 2, 5},      // across the first again, within the second
                                  {100, 200, 0, 5},     // the first row is free again
                                  {105, 255, 3, 5}})),  // across all
              ElementsAre("5: 0[0-100] 2[60-70] 0[100-200]", "thread 5 ranges: 1[50-250] 2[90-110]",
                          "thread 5 ranges (2): 3[105-255]"));
}

TEST(RangeTimelineTest, WhereAThreadHasCallsRangesAreBelowIt) {
  MemoryRecording recording = RecordingOf({{10, 20, 0, 5}});
  recording.mutable_metadata().timeline = true;
  EXPECT_THAT(RowsOf(recording), ElementsAre("thread 5 ranges: 0[10-20]"));
}

TEST(RangeTimelineTest, OfAPartIsCutAtItsEnds) {
  const MemoryRecording recording =
      RecordingOf({{0, 50, 0, 5}, {10, 300, 1, 5}, {150, 400, 2, 5}, {500, 600, 3, 5}},
                  {{40, 120, 0, 5, 20}, {110, 500, 0, 5, 30}});
  EXPECT_THAT(RowsOf(recording, true, {.since_ns = 100, .until_ns = 200}),
              ElementsAre("5: 1[100-200] 2[150-200]", "stream 7: 0[100-200] 1[100-200]"));
}

// Of each time that it was open, what its thread launched by then, wherever it ran.
TEST(RangeTimelineTest, HasTheExtentOfWhatWasLaunchedInIt) {
  const MemoryRecording recording =
      RecordingOf({{10, 20, 1, 5}, {5, 50, 0, 5}, {60, 70, 0, 5}}, {{100, 110, 0, 5, 5},
                                                                    {110, 120, 0, 5, 10},
                                                                    {121, 130, 0, 5, 20},
                                                                    {130, 140, 0, 5, 21},
                                                                    {90, 95, 1, 5, 50},
                                                                    {96, 99, 1, 5, 51},
                                                                    {150, 160, 0, 6, 15},
                                                                    {150, 160, 1, 0, -kStart}});
  EXPECT_THAT(RowsOf(recording),
              ElementsAre("5: 0[5-50] 1[10-20] 0[60-70]", "stream 7: 0[100-140] 1[110-130]",
                          "stream 8: 0[90-95]"));
  EXPECT_THAT(RowsOf(recording, false),
              ElementsAre("5: 0[5-50] 1[10-20] 0[60-70]", "stream 7 ranges: 0[100-140] 1[110-130]",
                          "stream 8 ranges: 0[90-95]"));
}

// Work that lies across its end is of another thread, or in no range.
TEST(RangeTimelineTest, ThatOverlapsWorkIsNotOnTheRowOfTheStream) {
  EXPECT_THAT(RowsOf(RecordingOf({{10, 20, 0, 5}},
                                 {{100, 110, 0, 6, 1}, {105, 120, 0, 5, 15}, {130, 140, 0, 6, 2}})),
              ElementsAre("5: 0[10-20]", "stream 7 ranges: 0[105-120]"));
  EXPECT_THAT(RowsOf(RecordingOf({{10, 20, 0, 5}}, {{100, 110, 0, 6, 1}, {103, 107, 0, 5, 15}})),
              ElementsAre("5: 0[10-20]", "stream 7: 0[103-107]"))
      << "within a work";
}

/// By looking at everything.
std::vector<std::string> SlowExtents(const RecordingSource& recording) {
  std::vector<std::string> all;
  const GpuRecord& gpu = *recording.gpu();
  for (const RangeSpan& span : recording.ranges()->spans) {
    for (uint32_t sum = 0; sum < gpu.sums.size(); ++sum) {
      int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
      for (const GpuSpan& work : gpu.spans) {
        if (work.sum != sum || work.tid != span.tid || work.launch_ns < span.begin_ns ||
            work.launch_ns > span.end_ns) {
          continue;
        }
        begin = std::min(begin, work.begin_ns);
        end = std::max(end, work.end_ns);
      }
      if (end == 0) continue;
      all.push_back(fmt::format("{} {} {}-{}", gpu.sums[sum].stream, span.range, begin - kStart,
                                end - kStart));
    }
  }
  std::ranges::sort(all);
  return all;
}

TEST(RangeTimelineTest, OfAnythingNothingIsLostAndNothingOverlaps) {
  std::mt19937 random(1);
  const auto below = [&random](int limit) {
    return static_cast<int64_t>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<RangeSpan> spans;
    std::vector<GpuSpan> works;
    for (int i = 0; i < 40; ++i) {
      const int64_t begin = below(100);
      spans.push_back({begin, begin + below(60), static_cast<uint32_t>(below(4)),
                       static_cast<uint32_t>(1 + below(2))});
      const int64_t work = 200 + below(200);
      works.push_back({work, work + below(20), static_cast<uint32_t>(below(2)),
                       static_cast<uint32_t>(1 + below(3)), 1 + below(150)});
    }
    const MemoryRecording recording = RecordingOf(spans, works);
    const Profile profile = Fold(recording, {}).value();
    const GpuTimeline gpu(profile);
    const RangeTimeline timeline(profile, gpu, true);
    std::vector<std::string> extents;
    std::vector<std::vector<RangeTimeline::Slice>> rows(timeline.rows().size());
    timeline.ForEachSlice([&](const RangeTimeline::Slice& slice, size_t row) {
      rows[row].push_back(slice);
      if (!timeline.rows()[row].is_stream) return;
      extents.push_back(
          fmt::format("{} {} {}-{}", slice.stream, slice.range, slice.begin_ns, slice.end_ns));
    });
    std::ranges::sort(extents);
    EXPECT_EQ(extents, SlowExtents(recording));
    for (size_t row = 0; row < rows.size(); ++row) {
      const RangeTimeline::Row& of = timeline.rows()[row];
      if (of.is_stream && of.lane == 0) {
        gpu.ForEachWork([&](const GpuTimeline::Work& work, size_t at) {
          if (gpu.rows()[at].stream != of.stream || gpu.rows()[at].lane != 0) return;
          rows[row].push_back({.begin_ns = work.begin_ns, .end_ns = work.end_ns});
        });
      }
      for (const auto& a : rows[row]) {
        for (const auto& b : rows[row]) {
          EXPECT_FALSE(a.begin_ns < b.begin_ns && b.begin_ns < a.end_ns && a.end_ns < b.end_ns);
        }
      }
    }
  }
}

// All of them overlap, and there is as much work on as many streams.
TEST(RangeTimelineTest, TakesAFileThatWasMadeToTakeLong) {
  constexpr uint32_t kCount = 1 << 14;
  MemoryRecording recording = RecordingOf({{0, 0, 0, 5}});
  RangeRecord ranges = *recording.ranges();
  GpuRecord gpu = *recording.gpu();
  for (uint32_t i = 0; i < kCount; ++i) {
    ranges.spans.push_back({kStart + i, kStart + kCount + i, 0, 5});
    gpu.sums.push_back({.stream = 100 + i, .count = 1});
    gpu.spans.push_back({kStart + i, kStart + i + 1, 2 + i, 5, kStart + kCount});
  }
  recording.SetRanges(std::move(ranges));
  recording.SetGpu(std::move(gpu));
  const Profile profile = Fold(recording, {}).value();
  const RangeTimeline timeline(profile, GpuTimeline(profile), true);
  EXPECT_GT(timeline.left_out(), 0);
  EXPECT_GT(timeline.rows().size(), kCount);
}

TEST(TraceEventsTest, HaveRangesByTheNamesOfKineto) {
  const std::string text = WrittenExample(WriteTraceEvents, "ranges");
  EXPECT_THAT(text, HasSubstr(R"({"ph":"X","cat":"user_annotation","name":"forward","pid":4242,)"
                              R"("tid":4242,"ts":5.000,"dur":50.000,"args":{}})"));
  EXPECT_THAT(text, HasSubstr(R"("name":"all_reduce","pid":4242,"tid":4242,"ts":62.000,)"
                              R"("dur":2.000,"args":{"domain":"NCCL"}})"));
  EXPECT_THAT(text, HasSubstr(R"("name":"load ahead","pid":4242,"tid":10004242,)"));
  EXPECT_THAT(text, HasSubstr(R"("args":{"name":"thread 4242 ranges"})"));
  EXPECT_THAT(text, HasSubstr(R"({"ph":"X","cat":"gpu_user_annotation","name":"forward","pid":0,)"
                              R"("tid":7,"ts":100.000,"dur":600.032,)"
                              R"("args":{"device":0,"stream":7}})"));
  EXPECT_LT(text.find("gpu_user_annotation"), text.find(R"("cat":"kernel")"));
  EXPECT_THAT(WrittenExample(WriteTraceEvents, "gpu-timeline"), Not(HasSubstr("annotation")));
}

TEST(TimelineTest, OfRangesAloneIsWritten) {
  MemoryRecording recording;
  ASSERT_TRUE(testing::FillExample("ranges-alone", recording));
  const auto profile = Fold(recording, {});
  testing::StringOutput output;
  EXPECT_TRUE(Write(Format::kTraceEvents, *profile, {}, output));
  EXPECT_TRUE(Write(Format::kPerfetto, *profile, {}, output));
}

}  // namespace
}  // namespace pystrobe::write
