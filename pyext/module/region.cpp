// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/region.h"

#include <fmt/format.h>
#include <pybind11/critical_section.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "pyext/module/errors.h"
#include "pyext/module/text.h"
#include "sampler/pyabi/regions.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using pyabi::Address;

py::object CodeOf(PyFrameObject* frame) {
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}
py::object CallerOf(PyFrameObject* frame) {
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
}

PyFrameObject* AsFrame(const py::object& frame) {
  return reinterpret_cast<PyFrameObject*>(frame.ptr());
}
PyCodeObject* AsCode(const py::object& code) { return reinterpret_cast<PyCodeObject*>(code.ptr()); }

// Where the interpreter keeps the frame. Up to 3.10 that is the frame object; from 3.11 on a frame
// object names it behind its head and its caller (struct _frame in
// Include/internal/pycore_frame.h of each version).
Address AddressOf(PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030B0000
  return reinterpret_cast<Address>(frame);
#else
  Address address = 0;
  std::memcpy(&address, reinterpret_cast<const char*>(frame) + sizeof(PyObject) + sizeof(void*),
              sizeof address);
  return address;
#endif
}

bool IsOfContextlib(const py::object& frame) {
  const py::object code = CodeOf(AsFrame(frame));
  Py_ssize_t size = 0;
  const char* file = PyUnicode_AsUTF8AndSize(AsCode(code)->co_filename, &size);
  if (file == nullptr) {
    PyErr_Clear();
    return false;
  }
  return std::string_view(file, static_cast<size_t>(size)).ends_with("/contextlib.py");
}

bool IsGenerator(const py::object& frame) {
  constexpr int kGenerators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return (AsCode(CodeOf(AsFrame(frame)))->co_flags & kGenerators) != 0;
}

// The frame whose block it is. What contextlib makes a context manager of is a generator that
// waits while the block runs; what an ExitStack enters, the stack does.
py::object FrameOfBlock() {
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    py::object caller = CallerOf(AsFrame(frame));
    if (!caller) break;
    const bool passes_on = IsOfContextlib(frame) || (IsGenerator(frame) && IsOfContextlib(caller));
    if (!passes_on) break;
    frame = std::move(caller);
  }
  return frame;
}

}  // namespace

void Region::Enter() {
  const py::object frame = FrameOfBlock();
  if (!frame) {
    Raise({ErrorCode::kInvalidArgument,
           fmt::format("the region '{}' is entered where no Python code runs", name_),
           "Put `with` into a function of Python, or decorate one."});
  }
  const Address address = AddressOf(AsFrame(frame));
  const auto code = reinterpret_cast<Address>(CodeOf(AsFrame(frame)).ptr());
  pyabi::Regions::OfThisProcess().Enter(address, code, name_);
  entered_.push_back(address);
}

void Region::Leave() {
  if (entered_.empty()) {
    Raise({ErrorCode::kInvalidArgument, fmt::format("the region '{}' was not entered", name_),
           "Leave it once for each time that it was entered, as `with` does."});
  }
  const py::object frame = FrameOfBlock();
  const Address address = frame ? AddressOf(AsFrame(frame)) : 0;
  auto own = std::ranges::find(entered_.rbegin(), entered_.rend(), address);
  if (own == entered_.rend()) own = entered_.rbegin();
  pyabi::Regions::OfThisProcess().Leave(*own, name_);
  entered_.erase(std::next(own).base());
}

void DefineRegion(py::module_& module) {
  py::class_<Region>(module, "Region")
      .def(py::init([](const py::object& name) { return Region(FromName(name, "a region")); }),
           py::arg("name"))
      .def_property_readonly("name", &Region::name)
      .def("__enter__",
           [](py::object self) {
             const py::scoped_critical_section one_at_a_time(self);
             self.cast<Region&>().Enter();
             return self;
           })
      .def("__exit__", [](const py::object& self, const py::args&) {
        const py::scoped_critical_section one_at_a_time(self);
        self.cast<Region&>().Leave();
      });
}

}  // namespace pystrobe::pyext
