// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/core.h"

#include <pybind11/stl.h>

#include <utility>

#include "pyext/module/call_tracer.h"
#include "pyext/module/errors.h"
#include "pyext/module/gpu.h"
#include "pyext/module/own_sampler.h"
#include "pyext/module/region.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

ReportOptions ToReportOptions(std::optional<std::string> mode, std::optional<std::string> thread,
                              double since, std::optional<double> until, bool include_idle) {
  return {.mode = std::move(mode),
          .thread = std::move(thread),
          .since = since,
          .until = until,
          .include_idle = include_idle};
}

void DefineRead(py::module_& module) {
  module.def(
      "read",
      [](const std::string& path, std::optional<std::string> mode,
         std::optional<std::string> thread, double since, std::optional<double> until,
         bool include_idle) {
        return ReadReport(
            path, ToReportOptions(std::move(mode), std::move(thread), since, until, include_idle));
      },
      py::arg("path"), py::arg("mode"), py::arg("thread"), py::arg("since"), py::arg("until"),
      py::arg("include_idle"));
}

void DefineRecording(py::module_& module) {
  py::class_<Recording>(module, "Recording")
      .def(
          "report",
          [](const Recording& self, std::optional<std::string> mode,
             std::optional<std::string> thread, double since, std::optional<double> until,
             bool include_idle) {
            return MakeReport(self, ToReportOptions(std::move(mode), std::move(thread), since,
                                                    until, include_idle));
          },
          py::arg("mode"), py::arg("thread"), py::arg("since"), py::arg("until"),
          py::arg("include_idle"))
      .def(
          "table",
          [](const Recording& self, std::optional<std::string> mode, std::optional<uint32_t> top,
             std::optional<int> fd, std::string directory, bool include_idle,
             std::optional<std::string> thread) {
            return MakeTable(self, {.mode = std::move(mode),
                                    .top = top,
                                    .fd = fd,
                                    .directory = std::move(directory),
                                    .include_idle = include_idle,
                                    .thread = std::move(thread)});
          },
          py::arg("mode"), py::arg("top"), py::arg("fd"), py::arg("directory"),
          py::arg("include_idle"), py::arg("thread"))
      .def("save", &Save, py::arg("fd"), py::arg("name"), py::arg("format"), py::arg("mode"),
           py::arg("include_idle"), py::arg("unit"))
      .def("stacks", &ListStacks, py::arg("mode"), py::arg("include_idle"));
}

void DefineOwnSampler(py::module_& module) {
  py::class_<OwnSampler>(module, "OwnSampler")
      .def(py::init([](bool by_cpu_time, double rate, double max_overhead, bool native,
                       bool only_caller, std::string version, std::string gpu_failure,
                       std::optional<int> fd) {
             return std::make_unique<OwnSampler>(
                 OwnSamplerOptions{.by_cpu_time = by_cpu_time,
                                   .rate_hz = rate,
                                   .max_overhead = max_overhead,
                                   .native = native,
                                   .only_caller = only_caller,
                                   .version = std::move(version),
                                   .gpu_failure = std::move(gpu_failure),
                                   .fd = fd});
           }),
           py::arg("by_cpu_time"), py::arg("rate"), py::arg("max_overhead"), py::arg("native"),
           py::arg("only_caller"), py::arg("version"), py::arg("gpu_failure"), py::arg("fd"))
      .def("start",
           [](OwnSampler& self) {
             const Result<void> started = [&] {
               const py::gil_scoped_release released;
               return self.Start();
             }();
             if (!started) Raise(started.error());
           })
      .def("stop",
           [](OwnSampler& self) {
             Result<std::unique_ptr<Recording>> recording = [&] {
               const py::gil_scoped_release released;
               return self.Stop();
             }();
             return ValueOrRaise(std::move(recording));
           })
      .def("moved_because",
           [](const OwnSampler& self) -> std::optional<std::string> {
             const auto reason = self.MovedBecause();
             return reason ? std::optional(reason->message) : std::nullopt;
           })
      .def("whole", &OwnSampler::whole)
      .def("watch_gpu", &OwnSampler::WatchGpu, py::arg("trace"), py::keep_alive<1, 2>())
      .def("end", &OwnSampler::End, py::call_guard<py::gil_scoped_release>())
      .def(
          "set_gpu",
          [](OwnSampler& self, launch::GpuWorkOfProcess& work) { self.SetGpu(std::move(work)); },
          py::arg("work"))
      .def("abandon", &OwnSampler::Abandon)
      .def_static("forget_parent", &OwnSampler::ForgetParent);
}

}  // namespace
}  // namespace pystrobe::pyext

PYBIND11_MODULE(_core, module, py::mod_gil_not_used()) {
  module.doc() = "The native core of pystrobe. Use the functions of the package instead.";
  module.attr("__version__") = PYSTROBE_VERSION;
  module.def("dump", &pystrobe::pyext::TakeDump, py::arg("pid"), py::arg("locals"),
             py::arg("pause"), py::arg("native"));
  module.def("format_of", &pystrobe::pyext::FormatOf, py::arg("file_name"));
  module.def("split_suffix", &pystrobe::pyext::SplitSuffix, py::arg("path"));
  pystrobe::pyext::DefineRead(module);
  pystrobe::pyext::DefineRecording(module);
  pystrobe::pyext::DefineOwnSampler(module);
  pystrobe::pyext::DefineRegion(module);
  pystrobe::pyext::DefineCallTracer(module);
  pystrobe::pyext::DefineGpu(module);
  pystrobe::pyext::DefineGpuTrace(module);
}
