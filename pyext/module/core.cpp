// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/core.h"

#include <pybind11/stl.h>

#include <utility>

namespace py = pybind11;

PYBIND11_MODULE(_core, module, py::mod_gil_not_used()) {
  module.doc() = "The native core of pystrobe. Use the functions of the package instead.";
  module.def("dump", &pystrobe::pyext::TakeDump, py::arg("pid"), py::arg("locals"),
             py::arg("pause"));
  module.def(
      "read",
      [](const std::string& path, std::string mode, std::optional<std::string> thread, double since,
         std::optional<double> until, bool include_idle) {
        return pystrobe::pyext::ReadReport(path, {.mode = std::move(mode),
                                                  .thread = std::move(thread),
                                                  .since = since,
                                                  .until = until,
                                                  .include_idle = include_idle});
      },
      py::arg("path"), py::arg("mode"), py::arg("thread"), py::arg("since"), py::arg("until"),
      py::arg("include_idle"));
}
