// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/html_lists.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/analyze/gpu_idle.h"
#include "profiler/analyze/gpu_meanwhile.h"
#include "profiler/analyze/gpu_table.h"
#include "profiler/analyze/range_table.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/labels.h"
#include "profiler/write/number_text.h"
#include "profiler/write/range_labels.h"

namespace pystrobe::write {
namespace {

struct Column {
  std::string_view label;
  std::string_view kind;
  std::string_view hint = {};
};

/// In the program; of one that is not in any file the name says what it is.
struct Place {
  std::string_view name;
  std::string_view file = {};
  std::string lines = {};
};

class Lists {
 public:
  Lists(const RecordingSource& recording, JsonWriter& json)
      : recording_(recording), tables_(recording.tables()), json_(json) {}

  void WriteKernels();
  void WriteLaunches(const GpuTable& table);
  void WriteIdle(const GpuIdleTable& table);
  void WriteWaits(const GpuIdleTable& table);
  Result<void> WriteMeanwhile();
  void WriteRanges();

 private:
  // Of a GPU: shown with its time alone.
  void Begin(std::string_view label, bool of_gpu, const std::string& summary, uint64_t whole,
             std::initializer_list<Column> columns);
  void End() { json_.EndArray().EndObject(); }
  template <typename... Values>
  void WriteRow(std::string_view hint, uint32_t depth, const Values&... values);
  void Put(uint64_t number) { json_.Value(number); }
  void Put(std::string_view text) { json_.Value(text); }
  void Put(const Place& place);

  Place PlaceOf(const std::optional<FrameId>& line) const;
  Place PlaceOf(const GpuIdleRow& row) const;

  const RecordingSource& recording_;
  const Tables& tables_;
  JsonWriter& json_;
};

void Lists::Begin(std::string_view label, bool of_gpu, const std::string& summary, uint64_t whole,
                  std::initializer_list<Column> columns) {
  json_.NewLine().BeginObject().Field("label", label).Field("gpu", of_gpu);
  json_.Field("summary", std::string_view(summary)).Field("whole", whole);
  json_.Key("columns").BeginArray();
  for (const Column& column : columns) {
    json_.BeginObject().Field("label", column.label).Field("kind", column.kind);
    json_.Field("hint", column.hint).EndObject();
  }
  json_.EndArray().Key("rows").BeginArray();
}

template <typename... Values>
void Lists::WriteRow(std::string_view hint, uint32_t depth, const Values&... values) {
  json_.NewLine().BeginObject().Key("values").BeginArray();
  (Put(values), ...);
  json_.EndArray().Field("hint", hint).Field("depth", depth).EndObject();
}

void Lists::Put(const Place& place) {
  json_.BeginArray().Value(place.name).Value(place.file);
  json_.Value(std::string_view(place.lines)).EndArray();
}

Place Lists::PlaceOf(const std::optional<FrameId>& line) const {
  if (!line) return {.name = "no Python"};
  const Frame& frame = tables_.frame(*line);
  const Function& function = tables_.function(frame.function);
  return {.name = FunctionName(function, tables_),
          .file = tables_.text(function.file),
          .lines = frame.line == 0 ? "" : fmt::to_string(frame.line)};
}

Place Lists::PlaceOf(const GpuIdleRow& row) const {
  switch (row.cause) {
    case GpuIdleCause::kHost: {
      if (!row.from || !row.to) return {.name = "no common Python caller"};
      Place place = PlaceOf(row.from);
      const std::string to = PlaceOf(row.to).lines;
      if (to != place.lines) place.lines += "-" + to;
      return place;
    }
    case GpuIdleCause::kWait:
      return PlaceOf(row.from);
    case GpuIdleCause::kQueue:
    case GpuIdleCause::kLaunch:
    case GpuIdleCause::kLaunches:
      return PlaceOf(row.to);
    case GpuIdleCause::kUnknown:
      return {};
  }
  return {};
}

template <typename Row>
uint64_t MeanOf(const Row& row) {
  // A file may say anything.
  return row.count == 0 ? 0 : row.total_ns / row.count;
}

std::string ShapeText(const GpuRow& row) {
  const uint64_t threads = uint64_t{row.block[0]} * row.block[1] * row.block[2];
  if (row.kind != GpuWorkKind::kKernel || threads == 0) return "";
  const std::string text = fmt::format("\n{} threads a block", GroupDigits(threads));
  if (!row.occupancy) return text;
  return text +
         fmt::format(", theoretical occupancy {:.0f} %, {:.3g} waves ({:.0f} % of the device busy)",
                     100 * row.occupancy->theoretical, row.occupancy->waves,
                     100 * row.occupancy->tail_efficiency);
}

void Lists::WriteKernels() {
  const GpuTable table = MakeGpuTable(recording_);
  if (table.rows.empty()) return;
  if (table.launches_only) return WriteLaunches(table);
  Begin("Kernels", true, GpuSummary(table), table.total_ns,
        {{"Count", "count", "How often a GPU did it"},
         {"Time", "share", "Of all that GPUs did"},
         {"Mean", "time"},
         {"Kernel", "name"},
         {"Launched at", "place", "The line of Python that launched most of it"}});
  for (const GpuRow& row : table.rows) {
    std::string hint = tables_.text(row.name) + ShapeText(row);
    hint += fmt::format("\n{} to {}", TimeText(row.min_ns), TimeText(row.max_ns));
    if (row.bytes > 0) hint += fmt::format(", {:.3g} GB", static_cast<double>(row.bytes) / 1e9);
    if (const std::string& advice = tables_.text(row.advice); !advice.empty())
      hint += "\n" + advice;
    WriteRow(hint, 0, row.count, row.total_ns, static_cast<uint64_t>(row.mean_ns()),
             table.LabelOf(row), PlaceOf(row.line));
  }
  End();
}

void Lists::WriteLaunches(const GpuTable& table) {
  Begin("Launches", true, GpuSummary(table), table.count,
        {{"Count", "count", "How often it was put on a GPU"},
         {"Share", "share", "Of all that was put on GPUs"},
         {"Kernel", "name"},
         {"Launched at", "place", "The line of Python that launched most of it"}});
  for (const GpuRow& row : table.rows) {
    WriteRow(tables_.text(row.name), 0, row.untimed, row.untimed, table.LabelOf(row),
             PlaceOf(row.line));
  }
  End();
}

void Lists::WriteIdle(const GpuIdleTable& table) {
  const uint64_t all_ns = table.busy_ns + table.idle_ns;
  if (all_ns == 0) return;
  const std::string summary =
      fmt::format("Nothing to do for {} of {}, from a GPU's first work to its last",
                  TimeText(table.idle_ns), TimeText(all_ns));
  Begin("Idle", true, summary, table.idle_ns,
        {{"Count", "count", "How often a GPU had nothing to do"},
         {"Time", "share", "Of all idle time"},
         {"Mean", "time"},
         {"Why", "name"},
         {"Where", "place",
          "The line that waited, or that launched next; or what the program was in meanwhile"}});
  for (const GpuIdleRow& row : table.rows) {
    const std::string_view why = GpuIdleCauseText(row.cause);
    const std::string hint = fmt::format("{}\nat most {}", why, TimeText(row.max_ns));
    WriteRow(hint, 0, row.count, row.total_ns, MeanOf(row), why, PlaceOf(row));
  }
  End();
}

void Lists::WriteWaits(const GpuIdleTable& table) {
  if (table.waits.empty()) return;
  uint64_t total_ns = 0;
  for (const GpuWaitRow& row : table.waits) total_ns += row.total_ns;
  Begin("Waits", true, fmt::format("Threads waited for a GPU for {}", TimeText(total_ns)), total_ns,
        {{"Count", "count", "How often a thread waited"},
         {"Time", "share", "Of all time that threads waited for a GPU"},
         {"Mean", "time"},
         {"Max", "time"},
         {"Where", "place", "The line that waited"}});
  for (const GpuWaitRow& row : table.waits) {
    WriteRow("", 0, row.count, row.total_ns, MeanOf(row), row.max_ns, PlaceOf(row.line));
  }
  End();
}

Result<void> Lists::WriteMeanwhile() {
  const auto read = MakeGpuMeanwhile(recording_);
  if (!read) return std::unexpected(read.error());
  const GpuMeanwhile& found = *read;
  if (found.rows.empty()) return {};
  const bool by_wall = found.wall_ns > 0;
  const std::string summary = fmt::format(
      "What the thread that launched next did in {} without launches", TimeText(found.gaps_ns));
  Begin("Meanwhile", true, summary, by_wall ? found.wall_ns : found.cpu_ns,
        {{"Time", "share", by_wall ? "Of all that was seen of these times" : "Of its CPU time"},
         {"On a CPU", "time"},
         {"Where", "place", "The innermost line of Python"}});
  for (const MeanwhileRow& row : found.rows) {
    WriteRow("", 0, by_wall ? row.wall_ns : row.cpu_ns, row.cpu_ns, PlaceOf(row.line));
  }
  End();
  return {};
}

void Lists::WriteRanges() {
  const RangeRecord& record = *recording_.ranges();
  const RangeTable table = MakeRangeTable(record);
  if (table.rows.empty()) return;
  Begin("Ranges", false, RangeSummary(record), 0,
        {{"Count", "count", "How often it began"},
         {"Host", "time", "From begin to end, of all"},
         {"Span", "time",
          "On GPUs, from the first work launched in it to the end of the last, of all"},
         {"Busy", "time", "What its works took of that"},
         {"Range", "name"}});
  for (const RangeRow& row : table.rows) {
    const NamedRange& range = record.ranges[row.range];
    WriteRow(fmt::format("{} works on {} streams", GroupDigits(row.works), row.streams), row.depth,
             range.count, range.host_ns, row.span_ns, row.busy_ns,
             std::string_view(RangeName(range, tables_)));
  }
  End();
}

}  // namespace

Result<void> WriteLists(const Profile& profile, JsonWriter& json) {
  const RecordingSource& recording = *profile.recording;
  json.NewLine().Key("lists").BeginArray();
  Lists lists(recording, json);
  const bool has_gpu = recording.gpu() != nullptr && profile.with_streams != nullptr;
  if (profile.is_whole && has_gpu) {
    lists.WriteKernels();
    const GpuIdleTable idle = MakeGpuIdleTable(recording);
    lists.WriteIdle(idle);
    lists.WriteWaits(idle);
    if (auto done = lists.WriteMeanwhile(); !done) return done;
  }
  if (profile.is_whole && recording.ranges() != nullptr) lists.WriteRanges();
  json.EndArray();
  return {};
}

}  // namespace pystrobe::write
