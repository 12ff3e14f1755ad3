// SPDX-License-Identifier: Apache-2.0
//
// Our own JSON, for programs: docs/json.md describes every field, docs/json.schema.json checks
// them. A field once published keeps its name, unit and meaning; new ones may come. kVersion
// changes when that cannot be kept.
#include <algorithm>
#include <string>
#include <vector>

#include "profiler/write/gpu_labels.h"
#include "profiler/write/json_gpu.h"
#include "profiler/write/json_ranges.h"
#include "profiler/write/json_writer.h"
#include "profiler/write/labels.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

constexpr int kVersion = 1;

class ProfileJson {
 public:
  ProfileJson(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        json_(out_),
        place_of_function_(tables_.function_count()) {
    if (profile.recording->metadata().native) split_ = SplitCpuTime(profile);
  }

  Result<void> Run() {
    json_.BeginObject().NewLine().Field("format", "pystrobe-profile").Field("version", kVersion);
    json_.NewLine().Field("title", Title(profile_.recording->metadata(), options_));
    json_.NewLine().Field("mode", ModeName(options_.mode));
    WriteMetadata(profile_.recording->metadata());
    WriteQuality(profile_.recording->quality());
    json_.NewLine().Key("range").BeginObject().Field("since_ns", profile_.since_ns);
    json_.Field("until_ns", profile_.until_ns);
    if (profile_.part) WriteCallsOf(*profile_.part);
    json_.EndObject();
    json_.NewLine().Key("total");
    WriteWeights(profile_.total);
    json_.NewLine().Key("unseen");
    WriteWeights(profile_.unseen);
    if (profile_.recording->metadata().native) {
      json_.NewLine().Key("cpu_split");
      WriteSplit(split_.total);
    }
    json_.NewLine().Field("idle_threads_hidden", profile_.idle_hidden.size());
    WriteFunctions();
    WriteThreads();
    if (profile_.recording->gpu() != nullptr) {
      if (auto done = WriteGpu(*profile_.recording, json_); !done) return done;
    }
    if (profile_.recording->ranges() != nullptr) WriteRanges(*profile_.recording, json_);
    json_.NewLine().EndObject();
    out_.Append('\n');
    return out_.Finish();
  }

 private:
  void WriteMetadata(const Metadata& metadata) {
    json_.NewLine().Key("metadata").BeginObject().Field("pid", metadata.pid);
    json_.Key("command").BeginArray();
    for (const std::string& argument : metadata.command) json_.Value(argument);
    json_.EndArray().Field("executable", metadata.executable);
    json_.Field("python_version", metadata.python_version).Field("host", metadata.host);
    json_.Field("pystrobe_version", metadata.pystrobe_version);
    json_.Field("pause_mode", metadata.pause_mode);
    json_.Field("start_unix_ns", metadata.start_unix_ns);
    json_.Field("start_monotonic_ns", metadata.start_monotonic_ns);
    json_.Field("wanted_rate_hz", metadata.wanted_rate_hz);
    json_.Field("max_overhead", metadata.max_overhead);
    json_.Field("cpu_count", metadata.cpu_count).Field("native", metadata.native);
    json_.Field("max_depth", metadata.max_depth);
    json_.Field("clock", ClockName(metadata.clock));
    if (!metadata.gpu_failure.empty()) json_.Field("gpu_failure", metadata.gpu_failure);
    json_.EndObject();
  }

  void WriteQuality(const Quality& quality) {
    json_.NewLine().Key("quality").BeginObject();
    json_.Field("line", WholeQualityLine(*profile_.recording));
    json_.Field("complete", quality.complete).Field("deadlines", quality.deadlines);
    json_.Field("stacks", quality.samples).Field("taken", quality.taken);
    json_.Field("proved", quality.proved).Field("marked", quality.marked);
    json_.Field("incomplete", quality.incomplete).Field("late", quality.late);
    json_.Field("lost", quality.lost).Field("retries", quality.retries);
    json_.Field("unresolved", quality.unresolved).Field("reused_code", quality.reused_code);
    json_.Field("duration_ns", quality.duration_ns).Field("held_ns", quality.held_ns);
    json_.Field("run_delay_ns", quality.run_delay_ns).Field("own_cpu_ns", quality.own_cpu_ns);
    json_.Field("achieved_rate_hz", quality.achieved_rate_hz);
    json_.Field("final_rate_hz", quality.final_rate_hz);
    json_.Field("cpu_source", quality.cpu_source);
    json_.Field("pause_mode", quality.pause_mode);
    json_.Field("thread_ns", quality.thread_ns);
    json_.Field("unseen_ns", quality.unseen_ns);
    if (quality.limited_ns) json_.Field("limited_ns", *quality.limited_ns);
    if (profile_.has_cpu_time) {
      json_.Field("cpu_ns", quality.cpu_ns).Field("unseen_cpu_ns", quality.unseen_cpu_ns);
    }
    json_.Field("native_cut", quality.native_cut).Field("native_unfit", quality.native_unfit);
    json_.Field("left_out", quality.left_out).Field("uncounted", quality.uncounted);
    if (!quality.timeline_failure.empty()) {
      json_.Field("timeline_failure", quality.timeline_failure);
      json_.Field("timeline_end_ns", quality.timeline_end_ns);
    }
    WriteHeldEach(quality.held_each);
    json_.EndObject();
  }

  void WriteHeldEach(const DurationHistogram& held) {
    const auto median = held.Median(), most = held.Quantile(0.99);
    if (!median || !most) return;
    json_.Field("held_count", held.count());
    json_.Field("held_median_ns", *median).Field("held_p99_ns", *most);
  }

  void WriteCallsOf(const CallsOfPart& part) {
    json_.Field("calls_began", part.began).Field("calls_began_before", part.began_before);
    json_.Field("calls_going_on", part.go_on);
  }

  void WriteWeights(const Weights& weights) {
    json_.BeginObject();
    WriteWeightFields(weights);
    json_.EndObject();
  }

  void WriteWeightFields(const Weights& weights) {
    json_.Field("samples", weights.samples);
    if (profile_.has_cpu_time) json_.Field("cpu_samples", weights.cpu_samples);
    json_.Field("gil_samples", weights.gil_samples).Field("wall_ns", weights.wall_ns);
    if (profile_.has_cpu_time) json_.Field("cpu_ns", weights.cpu_ns);
    json_.Field("gil_ns", weights.gil_ns);
    if (!profile_.with_streams) return;
    json_.Field("gpu_ns", weights.gpu_ns).Field("gpu_count", weights.gpu_count);
  }

  // The hottest first: who wants the table of functions reads no further.
  void WriteFunctions() {
    json_.NewLine().Key("functions").BeginArray();
    uint32_t place = 0;
    for (const FunctionRow& row : FunctionTable(profile_, options_.mode)) {
      if (!out_.ok()) return;
      place_of_function_[ToIndex(row.function)] = place++;
      const Function& function = tables_.function(row.function);
      json_.NewLine().BeginObject().Field("name", FunctionName(function, tables_));
      json_.Field("file", tables_.text(function.file)).Field("line", function.first_line);
      json_.Field("native", function.is_native);
      json_.Field("hottest_line", row.hottest_line).Key("self");
      WriteWeights(row.self);
      json_.Key("total");
      WriteWeights(row.total);
      WriteFunctionSplit(row.function);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteSplit(const CpuSplit& split) {
    json_.BeginObject();
    WriteSplitFields(split);
    json_.EndObject();
  }

  void WriteSplitFields(const CpuSplit& split) {
    json_.Field("python_ns", split.python_ns).Field("native_ns", split.native_ns);
    json_.Field("kernel_ns", split.kernel_ns);
  }

  void WriteFunctionSplit(FunctionId id) {
    const auto found = std::ranges::lower_bound(split_.functions, id, {}, &FunctionSplit::function);
    if (found == split_.functions.end() || found->function != id) return;
    json_.Key("cpu_split");
    WriteSplit(found->cpu);
    json_.Key("lines").BeginArray();
    for (const FunctionSplit::Line& line : found->lines) {
      json_.BeginObject().Field("line", line.line);
      WriteSplitFields(line.cpu);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteThreads() {
    json_.NewLine().Key("threads").BeginArray();
    for (const ThreadProfile& profile : profile_.threads) {
      const Thread& thread = tables_.thread(profile.thread);
      json_.NewLine().BeginObject().Field("name", tables_.text(thread.name));
      json_.Field("tid", thread.tid).Field("interpreter", thread.interpreter).Key("total");
      WriteWeights(profile.total);
      json_.Key("stacks").BeginArray();
      for (const StackWeight& entry : profile.stacks) {
        if (!out_.ok()) return;
        WriteStack(entry);
      }
      json_.EndArray().EndObject();
    }
    json_.EndArray();
  }

  void WriteStack(const StackWeight& entry) {
    frames_.clear();
    for (StackId id = entry.stack; id != kEmptyStack; id = tables_.stack(id).parent) {
      frames_.push_back(tables_.stack(id).frame);
    }
    json_.NewLine().BeginObject().Key("frames").BeginArray();
    for (auto id = frames_.rbegin(); id != frames_.rend(); ++id) {
      const Frame& frame = tables_.frame(*id);
      json_.BeginArray().Value(place_of_function_[ToIndex(frame.function)]).Value(frame.line);
      json_.EndArray();
    }
    json_.EndArray();
    WriteWeightFields(entry.self);
    json_.EndObject();
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  JsonWriter json_;
  SplitTimes split_;                         // empty without Metadata::native
  std::vector<uint32_t> place_of_function_;  // by FunctionId: place in `functions`
  std::vector<FrameId> frames_;              // of one stack, leaf first
};

}  // namespace

Result<void> WriteJson(const Profile& profile, const WriteOptions& options, Output& output) {
  return ProfileJson(profile, options, output).Run();
}

}  // namespace pystrobe::write
