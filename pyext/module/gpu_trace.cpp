// SPDX-License-Identifier: Apache-2.0
//
// What a GPU does for the calls of this process, for Python.
#include "pyext/launch/gpu_trace.h"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "pyext/module/errors.h"
#include "pyext/module/gpu.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

using launch::GpuTrace;
using launch::GpuWorkOfProcess;
using launch::PythonPaths;

std::unique_ptr<GpuTrace> Start(std::vector<std::string> library_paths) {
  gpu::CuptiOptions options;
  options.library_paths = std::move(library_paths);
  return ValueOrRaise(GpuTrace::Start(options));
}

}  // namespace

void DefineGpuTrace(py::module_& module) {
  py::class_<GpuWorkOfProcess>(module, "GpuWork");
  py::class_<GpuTrace>(module, "GpuTrace")
      .def(py::init(&Start), py::arg("library_paths"))
      .def("restart", &GpuTrace::Restart)
      .def("stop", &GpuTrace::Stop);
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
