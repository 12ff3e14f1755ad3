// SPDX-License-Identifier: Apache-2.0
//
// What a GPU does for the calls of this process, for Python.
#include "pyext/launch/gpu_trace.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "gpu/nvtx_injection.h"
#include "profiler/base/clock.h"
#include "profiler/store/recorder.h"
#include "pyext/module/errors.h"
#include "pyext/module/gpu.h"
#include "pyext/module/recording.h"
#include "pyext/module/text.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

using launch::GpuTrace;
using launch::GpuWorkOfProcess;
using launch::PythonPaths;
using launch::RangeTrace;

std::unique_ptr<GpuTrace> Start(std::vector<std::string> library_paths, size_t max_spans) {
  gpu::CuptiOptions options;
  options.library_paths = std::move(library_paths);
  options.sums.max_spans = max_spans;
  return ValueOrRaise(GpuTrace::Start(options));
}

Result<std::unique_ptr<Recording>> MakeRecording(const GpuWorkOfProcess& work) {
  auto metadata = DescribeThisProcess();
  if (!metadata) return std::unexpected(metadata.error());
  metadata->pause_mode = kOfGpu;
  const int64_t start_ns = work.begin.count();
  metadata->start_unix_ns -= metadata->start_monotonic_ns - start_ns;
  metadata->start_monotonic_ns = start_ns;
  auto file = store::CreateMemoryFile();
  if (!file) return std::unexpected(file.error());
  store::StrobeWriter writer(*std::move(file), "the recording");
  const Quality quality{.duration_ns = work.record.quality.duration_ns,
                        .own_cpu_ns = work.record.quality.own_cpu_ns,
                        .complete = true,
                        .pause_mode = std::string(kOfGpu)};
  auto done = writer.Begin(*metadata);
  if (done) done = writer.AppendGpu(work.tables, work.record);
  if (done) done = writer.Finish(Tables(), quality);
  if (!done) return std::unexpected(done.error());
  return Recording::Open(writer.TakeFd(), "the recording");
}

// As the record has it, with texts for their ids.
py::dict RangesOf(const GpuWorkOfProcess& work) {
  py::list ranges, streams, spans;
  for (const NamedRange& one : work.ranges.ranges) {
    const auto parent =
        one.parent == NamedRange::kNoParent ? std::nullopt : std::optional(one.parent);
    ranges.append(py::make_tuple(parent, ToStr(work.tables.text(one.domain)),
                                 ToStr(work.tables.text(one.name)), one.count, one.host_ns));
  }
  for (const RangeOnStream& one : work.ranges.streams) {
    streams.append(py::make_tuple(one.range, one.device, one.stream, one.instances, one.span_ns,
                                  one.busy_ns, one.works));
  }
  for (const RangeSpan& one : work.ranges.spans) {
    spans.append(py::make_tuple(one.begin_ns, one.end_ns, one.range, one.tid));
  }
  return py::dict(py::arg("ranges") = ranges, py::arg("streams") = streams,
                  py::arg("spans") = spans, py::arg("spans_lost") = work.ranges.spans_lost,
                  py::arg("overflowed") = work.ranges.overflowed);
}

void DefineRangeTrace(py::module_& module) {
  py::class_<RangeTrace>(module, "RangeTrace")
      .def(py::init([](size_t max_spans) { return ValueOrRaise(RangeTrace::Start(max_spans)); }),
           py::arg("max_spans"))
      .def("restart", &RangeTrace::Restart)
      .def("stop", &launch::RangesAlone);
  module.def("gpu_hear_ranges", [] {
    if (const auto done = gpu::HearNvtx(); !done) Raise(done.error());
  });
  module.def("gpu_other_range_tool", [] { return gpu::OtherNvtxTool(); });
}

}  // namespace

void DefineGpuTrace(py::module_& module) {
  py::class_<GpuWorkOfProcess>(module, "GpuWork").def_property_readonly("ranges", &RangesOf);
  DefineRangeTrace(module);
  py::class_<GpuTrace>(module, "GpuTrace")
      .def(py::init(&Start), py::arg("library_paths"), py::arg("max_spans"))
      .def("restart", &GpuTrace::Restart)
      .def("stop", &GpuTrace::Stop);
  module.def(
      "gpu_recording",
      [](const GpuWorkOfProcess& work) {
        auto made = [&] {
          const py::gil_scoped_release released;
          return MakeRecording(work);
        }();
        return ValueOrRaise(std::move(made));
      },
      py::arg("work"));
  module.def("gpu_enter_backward", [] {
    const auto paths = PythonPaths::OfThisProcess();
    return paths ? (*paths)->EnterBackward() : 0;
  });
  module.def(
      "gpu_leave_backward",
      [](uint32_t path) {
        if (const auto paths = PythonPaths::OfThisProcess()) (*paths)->LeaveBackward(path);
      },
      py::arg("path"));
}

}  // namespace pystrobe::pyext
