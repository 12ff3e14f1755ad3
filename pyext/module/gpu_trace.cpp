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
#include "pyext/module/gpu_work.h"
#include "pyext/module/recording.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

using launch::GpuTrace;
using launch::GpuWorkOfProcess;
using launch::PythonPaths;
using launch::RangeTrace;

std::unique_ptr<GpuTrace> Start(std::vector<std::string> library_paths, size_t max_spans,
                                bool records) {
  gpu::CuptiOptions options;
  options.library_paths = std::move(library_paths);
  options.sums.max_spans = max_spans;
  options.records = records;
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
  if (done) done = AppendWork(work, writer);
  if (done) done = writer.Finish(Tables(), quality);
  if (!done) return std::unexpected(done.error());
  return Recording::Open(writer.TakeFd(), "the recording");
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
  const py::class_<GpuWorkOfProcess> work(module, "GpuWork");
  DefineRangeTrace(module);
  py::class_<GpuTrace>(module, "GpuTrace")
      .def(py::init(&Start), py::arg("library_paths"), py::arg("max_spans"), py::arg("records"))
      .def("restart", &GpuTrace::Restart)
      .def("drop", &GpuTrace::Drop)
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
    return paths ? (*paths)->EnterBackward() : uint64_t{0};
  });
  module.def(
      "gpu_leave_backward",
      [](uint64_t entered) {
        if (const auto paths = PythonPaths::OfThisProcess()) (*paths)->LeaveBackward(entered);
      },
      py::arg("entered"));
  module.def(
      "gpu_prove_nodes",
      [](py::handle node, uint64_t sequence) {
        const auto paths = PythonPaths::OfThisProcess();
        const launch::TorchNodes* const nodes = paths ? (*paths)->nodes() : nullptr;
        return nodes != nullptr && nodes->Prove(node.ptr(), sequence);
      },
      py::arg("node"), py::arg("sequence"));
  module.def(
      "gpu_follow_nodes",
      [](const std::vector<std::string>& views) {
        const auto paths = PythonPaths::OfThisProcess();
        return paths && (*paths)->FollowNodes(views);
      },
      py::arg("views"));
}

}  // namespace pystrobe::pyext
