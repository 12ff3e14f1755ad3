// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/gpu_report.h"

#include <pybind11/stl.h>

#include <array>
#include <map>
#include <optional>

#include "profiler/analyze/gpu_meanwhile.h"
#include "profiler/analyze/gpu_table.h"
#include "profiler/write/gpu_labels.h"
#include "pyext/module/errors.h"
#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using py::literals::operator""_a;

class GpuDicts {
 public:
  explicit GpuDicts(const RecordingSource& recording)
      : recording_(recording), record_(*recording.gpu()), tables_(recording.tables()) {}

  py::dict Make() {
    const GpuTable table = MakeGpuTable(recording_);
    const py::list kernels = ListRows(table), sums = ListSums();
    const py::list idles = ListIdles(), waits = ListWaits();
    const py::dict meanwhile = MeanwhileDict();
    return py::dict("quality"_a = QualityDict(), "devices"_a = ListDevices(),
                    "total_ns"_a = table.total_ns, "frames"_a = frames_, "kernels"_a = kernels,
                    "shapes"_a = ListShapes(), "sums"_a = sums, "uses"_a = ListUses(),
                    "idles"_a = idles, "waits"_a = waits, "meanwhile"_a = meanwhile);
  }

 private:
  py::str Text(StringId id) const { return ToStr(tables_.text(id)); }

  static py::tuple Three(const std::array<uint32_t, 3>& three) {
    return py::make_tuple(three[0], three[1], three[2]);
  }

  static py::str Kind(GpuWorkKind kind) { return ToStr(write::GpuKindName(kind)); }

  static py::object OccupancyDict(const std::optional<GpuOccupancy>& occupancy) {
    if (!occupancy) return py::none();
    return py::dict("blocks_per_multiprocessor"_a = occupancy->blocks_per_multiprocessor,
                    "theoretical"_a = occupancy->theoretical, "waves"_a = occupancy->waves,
                    "tail_efficiency"_a = occupancy->tail_efficiency);
  }

  py::dict QualityDict() const {
    const GpuQuality& quality = record_.quality;
    return py::dict(
        "line"_a = ToStr(write::GpuQualityLine(record_, tables_)),
        "launches_only"_a = quality.launches_only, "kernel_launches"_a = quality.kernel_launches,
        "graph_launches"_a = quality.graph_launches, "copies"_a = quality.copies,
        "sets"_a = quality.sets, "failed"_a = quality.failed, "captured"_a = quality.captured,
        "records"_a = quality.records, "unmatched"_a = quality.unmatched,
        "of_graphs"_a = quality.of_graphs, "dropped"_a = quality.dropped,
        "overflowed"_a = quality.overflowed, "duration_ns"_a = quality.duration_ns,
        "own_cpu_ns"_a = quality.own_cpu_ns, "source"_a = Text(quality.source));
  }

  py::list ListDevices() const {
    py::list list;
    for (const GpuDevice& device : record_.devices) {
      list.append(py::dict("number"_a = device.number, "name"_a = Text(device.name),
                           "multiprocessors"_a = device.multiprocessors));
    }
    return list;
  }

  py::list ListRows(const GpuTable& table) {
    py::list list;
    for (const GpuRow& row : table.rows) {
      const auto least = row.median ? std::optional(row.median->least_ns) : std::nullopt;
      const auto most = row.median ? std::optional(row.median->most_ns) : std::nullopt;
      const auto line = row.line ? std::optional(PlaceOf(*row.line)) : std::nullopt;
      list.append(py::dict(
          "kind"_a = Kind(row.kind), "name"_a = Text(row.name),
          "short_name"_a = Text(row.short_name), "label"_a = ToStr(table.LabelOf(row)),
          "count"_a = row.count, "untimed"_a = row.untimed, "total_ns"_a = row.total_ns,
          "min_ns"_a = row.min_ns, "max_ns"_a = row.max_ns, "mean_ns"_a = row.mean_ns(),
          "median_at_least_ns"_a = least, "median_at_most_ns"_a = most, "bytes"_a = row.bytes,
          "gigabytes_per_second"_a = row.gigabytes_per_second(), "block"_a = Three(row.block),
          "last_grid"_a = Three(row.grid), "occupancy"_a = OccupancyDict(row.occupancy),
          "advice"_a = Text(row.advice), "launched_by"_a = line));
    }
    return list;
  }

  py::list ListShapes() const {
    py::list list;
    for (const GpuKernel& kernel : record_.kernels) {
      list.append(py::dict(
          "kind"_a = Kind(kernel.kind), "name"_a = Text(kernel.name),
          "short_name"_a = Text(kernel.short_name), "block"_a = Three(kernel.block),
          "cluster"_a = Three(kernel.cluster), "registers"_a = kernel.registers,
          "static_shared"_a = kernel.static_shared, "dynamic_shared"_a = kernel.dynamic_shared));
    }
    return list;
  }

  static std::optional<uint32_t> StreamOf(const GpuSum& sum) {
    return sum.stream == GpuSum::kNoStream ? std::nullopt : std::optional(sum.stream);
  }

  py::list ListSums() {
    py::list list;
    for (const GpuSum& sum : record_.sums) {
      list.append(py::dict(
          "frames"_a = PlacesOf(sum.stack), "kernel"_a = sum.kernel, "device"_a = sum.device,
          "stream"_a = StreamOf(sum), "count"_a = sum.count, "untimed"_a = sum.untimed,
          "total_ns"_a = sum.total_ns, "min_ns"_a = sum.min_ns, "max_ns"_a = sum.max_ns,
          "bytes"_a = sum.bytes, "last_grid"_a = Three(sum.last_grid),
          "buckets"_a = py::tuple(py::cast(sum.buckets)),
          "occupancy"_a = OccupancyDict(sum.occupancy), "advice"_a = Text(sum.advice)));
    }
    return list;
  }

  py::list ListUses() const {
    py::list list;
    for (const GpuUse& use : record_.uses) {
      list.append(
          py::dict("device"_a = use.device, "busy_ns"_a = use.busy_ns, "idle_ns"_a = use.idle_ns));
    }
    return list;
  }

  py::list ListIdles() {
    py::list list;
    for (const GpuIdle& idle : record_.idles) {
      list.append(
          py::dict("device"_a = idle.device, "cause"_a = ToStr(write::GpuIdleCauseName(idle.cause)),
                   "from_frames"_a = PlacesOf(idle.from), "to_frames"_a = PlacesOf(idle.to),
                   "count"_a = idle.count, "total_ns"_a = idle.total_ns, "max_ns"_a = idle.max_ns));
    }
    return list;
  }

  py::list ListWaits() {
    py::list list;
    for (const GpuWait& wait : record_.waits) {
      list.append(py::dict("frames"_a = PlacesOf(wait.stack), "count"_a = wait.count,
                           "total_ns"_a = wait.total_ns, "max_ns"_a = wait.max_ns));
    }
    return list;
  }

  py::dict MeanwhileDict() {
    const GpuMeanwhile found = ValueOrRaise([this] {
      const py::gil_scoped_release released;  // it reads all samples
      return MakeGpuMeanwhile(recording_);
    }());
    py::list lines;
    for (const MeanwhileRow& row : found.rows) {
      const auto line = row.line ? std::optional(PlaceOf(*row.line)) : std::nullopt;
      lines.append(py::dict("frame"_a = line, "wall_ns"_a = row.wall_ns, "cpu_ns"_a = row.cpu_ns));
    }
    return py::dict("gaps_ns"_a = found.gaps_ns, "wall_ns"_a = found.wall_ns,
                    "cpu_ns"_a = found.cpu_ns, "lines"_a = lines);
  }

  py::list PlacesOf(StackId stack) {
    py::list places;
    for (const FrameId id : tables_.FramesOf(stack)) places.append(PlaceOf(id));
    return places;
  }

  /// In frames_, where it is put the first time.
  size_t PlaceOf(FrameId id) {
    const auto [it, added] = places_.try_emplace(id, frames_.size());
    if (!added) return it->second;
    const Frame& frame = tables_.frame(id);
    const Function& function = tables_.function(frame.function);
    frames_.append(py::dict("function"_a = Text(function.name), "file"_a = Text(function.file),
                            "line"_a = frame.line, "native"_a = function.is_native));
    return it->second;
  }

  const RecordingSource& recording_;
  const GpuRecord& record_;
  const Tables& tables_;
  py::list frames_;
  std::map<FrameId, size_t> places_;
};

}  // namespace

py::object GpuReportDict(const RecordingSource& recording) {
  if (recording.gpu() == nullptr) return py::none();
  return GpuDicts(recording).Make();
}

}  // namespace pystrobe::pyext
