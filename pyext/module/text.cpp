// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/text.h"

#include <fmt/format.h>

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;

py::str Take(PyObject* decoded) {
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

}  // namespace

py::str ToStr(std::string_view text) {
  return Take(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

py::str ToPath(std::string_view bytes) {
  return Take(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

py::list ToPaths(const std::vector<std::string>& words) {
  py::list list;
  for (const std::string& word : words) list.append(ToPath(word));
  return list;
}

std::string FromName(py::handle name, std::string_view what) {
  if (!PyUnicode_Check(name.ptr())) {
    throw py::type_error(
        fmt::format("the name of {} is a str, not {}", what, Py_TYPE(name.ptr())->tp_name));
  }
  PyObject* const encoded = PyUnicode_AsEncodedString(name.ptr(), "utf-8", "backslashreplace");
  if (encoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(encoded);
}

}  // namespace pystrobe::pyext
