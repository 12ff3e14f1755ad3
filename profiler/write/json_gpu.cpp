// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/json_gpu.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "profiler/analyze/gpu_meanwhile.h"
#include "profiler/analyze/gpu_table.h"
#include "profiler/write/gpu_labels.h"

namespace pystrobe::write {
namespace {

class GpuJson {
 public:
  GpuJson(const RecordingSource& recording, JsonWriter& json)
      : recording_(recording),
        record_(*recording.gpu()),
        tables_(recording.tables()),
        json_(json),
        place_of_function_(tables_.function_count(), kNone) {}

  Result<void> Write() {
    const auto meanwhile = MakeGpuMeanwhile(recording_);
    if (!meanwhile) return std::unexpected(meanwhile.error());
    json_.NewLine().Key("gpu").BeginObject();
    WriteQuality();
    WriteDevices();
    const GpuTable table = MakeGpuTable(recording_);
    json_.NewLine().Field("total_ns", table.total_ns);
    GivePlaces(table);
    for (const MeanwhileRow& row : meanwhile->rows) {
      if (row.line) GivePlace(*row.line);
    }
    WriteFunctions();
    WriteTable(table);
    WriteKernels();
    WriteSums();
    WriteUses();
    WriteIdles();
    WriteWaits();
    WriteMeanwhile(*meanwhile);
    json_.EndObject();
    return {};
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  void WriteQuality() {
    const GpuQuality& quality = record_.quality;
    json_.NewLine().Key("quality").BeginObject();
    json_.Field("line", GpuQualityLine(record_, tables_));
    json_.Field("launches_only", quality.launches_only);
    json_.Field("kernel_launches", quality.kernel_launches);
    json_.Field("graph_launches", quality.graph_launches);
    json_.Field("copies", quality.copies).Field("sets", quality.sets);
    json_.Field("failed", quality.failed).Field("captured", quality.captured);
    json_.Field("records", quality.records).Field("of_graphs", quality.of_graphs);
    json_.Field("unmatched", quality.unmatched).Field("dropped", quality.dropped);
    json_.Field("overflowed", quality.overflowed).Field("duration_ns", quality.duration_ns);
    json_.Field("own_cpu_ns", quality.own_cpu_ns);
    json_.Field("source", tables_.text(quality.source)).EndObject();
  }

  void WriteDevices() {
    json_.NewLine().Key("devices").BeginArray();
    for (const GpuDevice& device : record_.devices) {
      json_.BeginObject().Field("number", device.number);
      json_.Field("name", tables_.text(device.name));
      json_.Field("multiprocessors", device.multiprocessors).EndObject();
    }
    json_.EndArray();
  }

  /// To the functions that are referred to, in the order in which they are met.
  void GivePlaces(const GpuTable& table) {
    for (const GpuSum& sum : record_.sums) GivePlaces(sum.stack);
    for (const GpuIdle& idle : record_.idles) {
      GivePlaces(idle.from);
      GivePlaces(idle.to);
    }
    for (const GpuWait& wait : record_.waits) GivePlaces(wait.stack);
    for (const GpuRow& row : table.rows) {
      if (row.line) GivePlace(*row.line);
    }
  }

  void GivePlaces(StackId stack) {
    for (StackId id = stack; id != kEmptyStack; id = tables_.stack(id).parent) {
      GivePlace(tables_.stack(id).frame);
    }
  }

  void GivePlace(FrameId frame) {
    const FunctionId function = tables_.frame(frame).function;
    uint32_t& place = place_of_function_[ToIndex(function)];
    if (place != kNone) return;
    place = static_cast<uint32_t>(functions_.size());
    functions_.push_back(function);
  }

  void WriteFunctions() {
    json_.NewLine().Key("functions").BeginArray();
    for (const FunctionId id : functions_) {
      const Function& function = tables_.function(id);
      json_.NewLine().BeginObject().Field("name", FunctionName(function, tables_));
      json_.Field("file", tables_.text(function.file)).Field("line", function.first_line);
      json_.Field("native", function.is_native).EndObject();
    }
    json_.EndArray();
  }

  void WriteTable(const GpuTable& table) {
    json_.NewLine().Key("table").BeginArray();
    for (const GpuRow& row : table.rows) {
      if (!json_.ok()) return;
      json_.NewLine().BeginObject().Field("kind", GpuKindName(row.kind));
      json_.Field("name", tables_.text(row.name));
      json_.Field("short_name", tables_.text(row.short_name));
      json_.Field("label", table.LabelOf(row));
      json_.Field("count", row.count).Field("untimed", row.untimed);
      json_.Field("total_ns", row.total_ns).Field("min_ns", row.min_ns);
      json_.Field("max_ns", row.max_ns).Field("mean_ns", row.mean_ns());
      if (row.median) {
        json_.Field("median_at_least_ns", row.median->least_ns);
        json_.Field("median_at_most_ns", row.median->most_ns);
      }
      json_.Field("bytes", row.bytes);
      WriteThree("block", row.block);
      WriteThree("last_grid", row.grid);
      WriteOccupancy(row.occupancy, row.advice);
      if (row.line) WriteFrame("launched_by", *row.line);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteKernels() {
    json_.NewLine().Key("kernels").BeginArray();
    for (const GpuKernel& kernel : record_.kernels) {
      if (!json_.ok()) return;
      json_.NewLine().BeginObject().Field("kind", GpuKindName(kernel.kind));
      json_.Field("name", tables_.text(kernel.name));
      json_.Field("short_name", tables_.text(kernel.short_name));
      WriteThree("block", kernel.block);
      WriteThree("cluster", kernel.cluster);
      json_.Field("registers", kernel.registers);
      json_.Field("static_shared", kernel.static_shared);
      json_.Field("dynamic_shared", kernel.dynamic_shared).EndObject();
    }
    json_.EndArray();
  }

  void WriteSums() {
    json_.NewLine().Key("sums").BeginArray();
    for (const GpuSum& sum : record_.sums) {
      if (!json_.ok()) return;
      json_.NewLine().BeginObject();
      WriteFrames("frames", sum.stack);
      json_.Field("kernel", sum.kernel).Field("device", sum.device);
      if (sum.stream != GpuSum::kNoStream) json_.Field("stream", sum.stream);
      json_.Field("count", sum.count).Field("untimed", sum.untimed);
      json_.Field("total_ns", sum.total_ns).Field("min_ns", sum.min_ns);
      json_.Field("max_ns", sum.max_ns).Field("bytes", sum.bytes);
      WriteThree("last_grid", sum.last_grid);
      json_.Key("buckets").BeginArray();
      for (const uint64_t bucket : sum.buckets) json_.Value(bucket);
      json_.EndArray();
      WriteOccupancy(sum.occupancy, sum.advice);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteUses() {
    json_.NewLine().Key("uses").BeginArray();
    for (const GpuUse& use : record_.uses) {
      json_.BeginObject().Field("device", use.device).Field("busy_ns", use.busy_ns);
      json_.Field("idle_ns", use.idle_ns).EndObject();
    }
    json_.EndArray();
  }

  void WriteIdles() {
    json_.NewLine().Key("idles").BeginArray();
    for (const GpuIdle& idle : record_.idles) {
      if (!json_.ok()) return;
      json_.NewLine().BeginObject().Field("device", idle.device);
      json_.Field("cause", GpuIdleCauseName(idle.cause));
      WriteFrames("from", idle.from);
      WriteFrames("to", idle.to);
      WriteTimes(idle);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteWaits() {
    json_.NewLine().Key("waits").BeginArray();
    for (const GpuWait& wait : record_.waits) {
      if (!json_.ok()) return;
      json_.NewLine().BeginObject();
      WriteFrames("frames", wait.stack);
      WriteTimes(wait);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteMeanwhile(const GpuMeanwhile& meanwhile) {
    json_.NewLine().Key("meanwhile").BeginObject().Field("gaps_ns", meanwhile.gaps_ns);
    json_.Field("wall_ns", meanwhile.wall_ns).Field("cpu_ns", meanwhile.cpu_ns);
    json_.Key("lines").BeginArray();
    for (const MeanwhileRow& row : meanwhile.rows) {
      json_.NewLine().BeginObject();
      if (row.line) WriteFrame("frame", *row.line);
      json_.Field("wall_ns", row.wall_ns).Field("cpu_ns", row.cpu_ns).EndObject();
    }
    json_.EndArray().EndObject();
  }

  template <typename Sum>
  void WriteTimes(const Sum& sum) {
    json_.Field("count", sum.count).Field("total_ns", sum.total_ns).Field("max_ns", sum.max_ns);
  }

  void WriteFrames(std::string_view key, StackId stack) {
    json_.Key(key).BeginArray();
    for (const FrameId id : tables_.FramesOf(stack)) {
      const Frame& frame = tables_.frame(id);
      json_.BeginArray().Value(place_of_function_[ToIndex(frame.function)]).Value(frame.line);
      json_.EndArray();
    }
    json_.EndArray();
  }

  void WriteFrame(std::string_view key, FrameId id) {
    const Frame& frame = tables_.frame(id);
    json_.Key(key).BeginArray().Value(place_of_function_[ToIndex(frame.function)]);
    json_.Value(frame.line).EndArray();
  }

  void WriteThree(std::string_view key, const std::array<uint32_t, 3>& three) {
    json_.Key(key).BeginArray();
    for (const uint32_t one : three) json_.Value(one);
    json_.EndArray();
  }

  void WriteOccupancy(const std::optional<GpuOccupancy>& occupancy, StringId advice) {
    if (occupancy) {
      json_.Key("occupancy").BeginObject();
      json_.Field("blocks_per_multiprocessor", occupancy->blocks_per_multiprocessor);
      json_.Field("theoretical", occupancy->theoretical).Field("waves", occupancy->waves);
      json_.Field("tail_efficiency", occupancy->tail_efficiency).EndObject();
    }
    if (advice != kEmptyString) json_.Field("advice", tables_.text(advice));
  }

  const RecordingSource& recording_;
  const GpuRecord& record_;
  const Tables& tables_;
  JsonWriter& json_;
  std::vector<uint32_t> place_of_function_;  // by FunctionId; kNone: not referred to
  std::vector<FunctionId> functions_;        // by place
};

}  // namespace

Result<void> WriteGpu(const RecordingSource& recording, JsonWriter& json) {
  return GpuJson(recording, json).Write();
}

}  // namespace pystrobe::write
