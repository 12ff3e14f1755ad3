// SPDX-License-Identifier: Apache-2.0
//
// The HTML report: the page of write/web with the profile in it as JSON. The page folds and sums;
// what is written is what cannot be derived:
//
//   strings    every text once
//   functions  columns name, file (indices into strings) and line (of the `def`); "native" has the
//              indices of those of machine code
//   frames     columns function and line
//   stacks     columns up and frame; stack i, counted from 1, is stack i - up[i - 1] with a frame
//              on top. Stack 0 is the empty one and not written.
//   threads    name, tid, ..., and a column for each weight, one row for each of its stacks:
//              "stack" counts from the row before, times are in microseconds, "kernel" is part of
//              "cpu"; "unseen" has what of the empty stack's weights are without a look. A stream
//              of a GPU is one too, with "stream" true
//   lists      of a GPU's work and of ranges, ready to be shown: html_lists.cpp
//
// Only what the profile uses is written, renumbered in the order of the recording's ids, so that
// what is near in the program is near in the file and the differences are small.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profiler/write/gpu_labels.h"
#include "profiler/write/html_lists.h"
#include "profiler/write/html_page.h"
#include "profiler/write/json_writer.h"
#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

/// Renumbers the used ones of a dense id space.
class Renumbering {
 public:
  explicit Renumbering(size_t count) : number_(count, 0) {}

  bool Use(uint32_t id) { return std::exchange(number_[id], 1U) == 0; }

  /// Call once, when all uses are known.
  void Number(uint32_t first) {
    for (uint32_t id = 0; id < number_.size(); ++id) {
      if (number_[id] == 0) continue;
      number_[id] = first + static_cast<uint32_t>(used_.size());
      used_.push_back(id);
    }
  }

  uint32_t operator[](uint32_t id) const { return number_[id]; }
  const std::vector<uint32_t>& used() const { return used_; }

 private:
  std::vector<uint32_t> number_;
  std::vector<uint32_t> used_;
};

/// What of the recording's tables the profile needs.
struct Used {
  explicit Used(const Profile& profile)
      : strings(profile.tables().string_count()),
        functions(profile.tables().function_count()),
        frames(profile.tables().frame_count()),
        stacks(profile.tables().stack_count()) {
    const Tables& tables = profile.tables();
    for (const ThreadProfile& thread : profile.threads) {
      for (const StackWeight& entry : thread.stacks) UseStack(tables, entry.stack);
    }
    stacks.Number(1);
    frames.Number(0);
    functions.Number(0);
    strings.Number(0);
  }

  Renumbering strings, functions, frames, stacks;

 private:
  void UseStack(const Tables& tables, StackId id) {
    while (id != kEmptyStack && stacks.Use(ToIndex(id))) {
      const StackNode& node = tables.stack(id);
      if (frames.Use(ToIndex(node.frame))) UseFunction(tables, tables.frame(node.frame).function);
      id = node.parent;
    }
  }

  void UseFunction(const Tables& tables, FunctionId id) {
    if (!functions.Use(ToIndex(id))) return;
    strings.Use(ToIndex(tables.function(id).name));
    strings.Use(ToIndex(tables.function(id).file));
  }
};

template <typename Range, typename Projection>
void WriteColumn(JsonWriter& json, std::string_view name, const Range& rows, Projection value) {
  json.Key(name).BeginArray();
  for (const auto& row : rows) json.Value(value(row));
  json.EndArray();
}

void WriteTables(const Tables& tables, const Used& used, JsonWriter& json) {
  const auto string_of = [&](StringId id) { return used.strings[ToIndex(id)]; };
  const auto function_at = [&](uint32_t id) { return tables.function(FunctionId{id}); };
  const auto frame_at = [&](uint32_t id) { return tables.frame(FrameId{id}); };
  const auto stack_at = [&](uint32_t id) { return tables.stack(StackId{id}); };

  json.NewLine();
  WriteColumn(json, "strings", used.strings.used(),
              [&](uint32_t id) -> std::string_view { return tables.text(StringId{id}); });

  json.NewLine().Key("functions").BeginObject();
  const std::vector<uint32_t>& functions = used.functions.used();
  WriteColumn(json, "name", functions,
              [&](uint32_t id) { return string_of(function_at(id).name); });
  WriteColumn(json, "file", functions,
              [&](uint32_t id) { return string_of(function_at(id).file); });
  WriteColumn(json, "line", functions, [&](uint32_t id) { return function_at(id).first_line; });
  json.Key("native").BeginArray();
  for (size_t i = 0; i < functions.size(); ++i) {
    if (function_at(functions[i]).is_native) json.Value(i);
  }
  json.EndArray().EndObject();

  json.NewLine().Key("frames").BeginObject();
  const std::vector<uint32_t>& frames = used.frames.used();
  WriteColumn(json, "function", frames,
              [&](uint32_t id) { return used.functions[ToIndex(frame_at(id).function)]; });
  WriteColumn(json, "line", frames, [&](uint32_t id) { return frame_at(id).line; });
  json.EndObject();

  json.NewLine().Key("stacks").BeginObject();
  const std::vector<uint32_t>& stacks = used.stacks.used();
  WriteColumn(json, "up", stacks, [&](uint32_t id) {
    return used.stacks[id] - used.stacks[ToIndex(stack_at(id).parent)];
  });
  WriteColumn(json, "frame", stacks,
              [&](uint32_t id) { return used.frames[ToIndex(stack_at(id).frame)]; });
  json.EndObject();
}

/// Leaves out a column of zeros.
void WriteWeights(JsonWriter& json, std::string_view name, const std::vector<StackWeight>& rows,
                  uint64_t Weights::* weight) {
  const auto is_zero = [&](const StackWeight& row) { return row.self.*weight == 0; };
  if (std::ranges::all_of(rows, is_zero)) return;
  WriteColumn(json, name, rows, [&](const StackWeight& row) { return row.self.*weight; });
}

/// In microseconds. What rounding takes from a row goes to the next: the sum stays right.
void WriteTimes(JsonWriter& json, std::string_view name, const std::vector<StackWeight>& rows,
                uint64_t Weights::* weight) {
  const auto is_zero = [&](const StackWeight& row) { return row.self.*weight == 0; };
  if (std::ranges::all_of(rows, is_zero)) return;
  uint64_t sum_ns = 0;
  uint64_t written_us = 0;
  WriteColumn(json, name, rows, [&](const StackWeight& row) {
    sum_ns += row.self.*weight;
    const uint64_t us = (sum_ns + 500) / 1000 - written_us;
    written_us += us;
    return us;
  });
}

void WriteUnseen(const Weights& unseen, JsonWriter& json) {
  if (unseen == Weights{}) return;
  json.Key("unseen").BeginObject().Field("samples", unseen.samples);
  json.Field("cpuSamples", unseen.cpu_samples).Field("gilSamples", unseen.gil_samples);
  json.Field("wall", unseen.wall_ns / 1000).Field("cpu", unseen.cpu_ns / 1000);
  json.Field("gil", unseen.gil_ns / 1000).EndObject();
}

void WriteStreamWeights(const ThreadProfile& stream, JsonWriter& json) {
  json.Field("stream", true);
  WriteTimes(json, "gpu", stream.stacks, &Weights::gpu_ns);
  WriteWeights(json, "gpuWorks", stream.stacks, &Weights::gpu_count);
}

void WriteThreadWeights(const ThreadProfile& profile, bool has_cpu_time, JsonWriter& json) {
  WriteWeights(json, "samples", profile.stacks, &Weights::samples);
  if (has_cpu_time) WriteWeights(json, "cpuSamples", profile.stacks, &Weights::cpu_samples);
  WriteWeights(json, "gilSamples", profile.stacks, &Weights::gil_samples);
  WriteTimes(json, "wall", profile.stacks, &Weights::wall_ns);
  if (has_cpu_time) WriteTimes(json, "cpu", profile.stacks, &Weights::cpu_ns);
  WriteTimes(json, "gil", profile.stacks, &Weights::gil_ns);
  WriteTimes(json, "kernel", profile.stacks, &Weights::kernel_ns);
  WriteUnseen(profile.unseen, json);
}

void WriteThread(const Profile& whole, const ThreadProfile& profile, const Used& used,
                 JsonWriter& json) {
  const Tables& tables = whole.tables();
  const Thread& thread = tables.thread(profile.thread);
  json.NewLine().BeginObject();
  json.Field("tid", thread.tid).Field("interpreter", thread.interpreter);
  json.Field("name", std::string_view(tables.text(thread.name)));
  json.Field("idle", profile.idle);
  uint32_t before = 0;
  WriteColumn(json, "stack", profile.stacks, [&](const StackWeight& row) {
    return used.stacks[ToIndex(row.stack)] - std::exchange(before, used.stacks[ToIndex(row.stack)]);
  });
  if (whole.IsStream(profile.thread)) {
    WriteStreamWeights(profile, json);
  } else {
    WriteThreadWeights(profile, whole.has_cpu_time, json);
  }
  json.EndObject();
}

void WriteMetadata(const Profile& profile, JsonWriter& json) {
  const Metadata& metadata = profile.recording->metadata();
  json.NewLine().Key("meta").BeginObject();
  json.Field("pid", metadata.pid);
  json.Field("executable", std::string_view(metadata.executable));
  json.Field("python", std::string_view(metadata.python_version));
  json.Field("host", std::string_view(metadata.host));
  json.Field("pystrobe", std::string_view(metadata.pystrobe_version));
  json.Field("pause", std::string_view(metadata.pause_mode));
  json.Field("startMs", metadata.start_unix_ns / 1'000'000);
  json.Field("cpus", metadata.cpu_count).Field("native", metadata.native);
  json.Field("cpuTime", profile.has_cpu_time);
  const GpuRecord* const gpu = profile.recording->gpu();
  json.Field("launchesOnly", gpu != nullptr && gpu->quality.launches_only);
  json.Field("gpu", profile.with_streams != nullptr).EndObject();
}

/// Of what was sampled, or of a GPU's work, which may be there alone.
int64_t DurationOf(const RecordingSource& recording) {
  const int64_t of_gpu = recording.gpu() == nullptr ? 0 : recording.gpu()->quality.duration_ns;
  return std::max(recording.quality().duration_ns, of_gpu);
}

void WriteQuality(const Profile& profile, JsonWriter& json) {
  const Quality& quality = profile.recording->quality();
  std::string sentence = WholeQualityLine(*profile.recording);
  if (profile.part) sentence = PartLine(profile) + ". Of the whole: " + sentence;
  json.NewLine().Key("quality").BeginObject();
  json.Field("sentence", std::string_view(sentence));
  const Verdict verdict = JudgeWhole(*profile.recording);
  json.Field("verdict", verdict == Verdict::kGood   ? "good"
                        : verdict == Verdict::kFair ? "fair"
                                                    : "bad");
  json.Field("duration", DurationOf(*profile.recording) / 1000);
  json.Field("deadlines", quality.deadlines).Field("taken", quality.taken);
  json.Field("proved", quality.proved).Field("incomplete", quality.incomplete);
  json.Field("lost", quality.lost).Field("complete", quality.complete);
  json.EndObject();
}

Result<void> WriteProfile(const Profile& profile, const WriteOptions& options, JsonWriter& json) {
  const Metadata& metadata = profile.recording->metadata();
  const Tables& tables = profile.tables();
  const Used used(profile);
  json.BeginObject().Field("version", 1);
  json.Field("title", std::string_view(Title(metadata, options)));
  json.Field("mode", ModeName(options.mode)).Field("idle", options.idle);
  WriteMetadata(profile, json);
  WriteQuality(profile, json);
  json.NewLine().Key("range").BeginObject();
  json.Field("since", profile.since_ns / 1000).Field("until", profile.until_ns / 1000);
  json.EndObject();
  WriteTables(tables, used, json);
  json.NewLine().Key("threads").BeginArray();
  for (const ThreadProfile& thread : profile.threads) {
    WriteThread(profile, thread, used, json);
  }
  json.EndArray();
  if (auto done = WriteLists(profile, json); !done) return done;
  json.NewLine().EndObject();
  return {};
}

void AppendText(std::string_view text, OutputBuffer& out) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out.Append("&amp;");
        break;
      case '<':
        out.Append("&lt;");
        break;
      case '>':
        out.Append("&gt;");
        break;
      default:
        out.Append(c);
    }
  }
}

}  // namespace

Result<void> WriteHtml(const Profile& profile, const WriteOptions& options, Output& output) {
  OutputBuffer out(output);
  JsonWriter json(out);
  const HtmlPage page = GetHtmlPage();
  out.Append(page.before_title);
  AppendText(Title(profile.recording->metadata(), options), out);
  out.Append(page.before_profile);
  if (auto done = WriteProfile(profile, options, json); !done) return done;
  out.Append(page.after_profile);
  return out.Finish();
}

}  // namespace pystrobe::write
