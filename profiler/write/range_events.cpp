// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/range_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "profiler/base/hash_map.h"
#include "profiler/write/gpu_events.h"
#include "profiler/write/json_writer.h"

namespace pystrobe::write {
namespace {

// Beyond all threads that Linux numbers.
constexpr uint64_t kThreadLanes = 10'000'000;
// Between the lanes of a stream's works, of which each is a million further.
constexpr uint64_t kFirstStreamLane = 500'000;
constexpr uint64_t kStreamLanes = 1'000'000;

uint64_t RowId(const RangeTimeline::Row& row) {
  if (!row.is_stream) return row.tid + row.lane * kThreadLanes;
  if (row.lane == 0) return row.stream;
  return row.stream + kFirstStreamLane + (row.lane - 1) * kStreamLanes;
}

std::string Json(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

}  // namespace

RangeEvents::RangeEvents(const Profile& profile, const GpuTimeline& gpu, OutputBuffer& out)
    : profile_(profile), tables_(profile.tables()), out_(out), timeline_(profile, gpu, true) {}

void RangeEvents::WriteQuality() {
  if (timeline_.empty()) return;
  const uint64_t lost = profile_.recording->ranges()->spans_lost;
  if (lost > 0) out_.Append(fmt::format(",\"range_spans_lost\":{}", lost));
  const uint64_t left_out = timeline_.left_out();
  if (left_out > 0) out_.Append(fmt::format(",\"range_spans_without_work\":{}", left_out));
}

void RangeEvents::WriteNames(std::span<const uint64_t> named) {
  const HashSet<uint64_t> has_name(named.begin(), named.end());
  for (const RangeTimeline::Row& row : timeline_.rows()) {
    const int64_t pid = row.is_stream ? row.device : profile_.recording->metadata().pid;
    if (row.lane > 0) {
      WriteName(pid, RowId(row), RangeRowName(row, tables_), RowId(row));
    } else if (!row.is_stream && !has_name.contains(row.tid)) {
      WriteName(pid, row.tid, LaunchingThreadName(tables_, row.tid), row.tid);
    }
  }
}

void RangeEvents::WriteName(int64_t pid, uint64_t tid, std::string_view name, uint64_t sort_index) {
  out_.Append(
      fmt::format(R"(,{}{{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                  '\n', pid, tid, Json(name)));
  out_.Append(fmt::format(
      R"(,{}{{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
      '\n', pid, tid, sort_index));
}

void RangeEvents::WriteSlices() {
  timeline_.ForEachSlice([this](const RangeTimeline::Slice& slice, size_t row) {
    if (out_.ok()) WriteSlice(slice, timeline_.rows()[row]);
  });
}

void RangeEvents::WriteSlice(const RangeTimeline::Slice& slice, const RangeTimeline::Row& row) {
  const NamedRange& range = profile_.recording->ranges()->ranges[slice.range];
  const int64_t pid = row.is_stream ? row.device : profile_.recording->metadata().pid;
  std::string args;
  if (row.is_stream) args = fmt::format(R"("device":{},"stream":{})", row.device, row.stream);
  if (range.domain != kEmptyString) {
    args +=
        fmt::format("{}\"domain\":{}", args.empty() ? "" : ",", Json(tables_.text(range.domain)));
  }
  out_.Append(fmt::format(
      R"(,{}{{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
      '\n', row.is_stream ? "gpu_user_annotation" : "user_annotation",
      Json(tables_.text(range.name)), pid, RowId(row), Microseconds(slice.begin_ns),
      Microseconds(slice.end_ns - slice.begin_ns), args));
}

}  // namespace pystrobe::write
