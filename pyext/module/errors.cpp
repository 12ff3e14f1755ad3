// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/errors.h"

#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

// The names that pystrobe._errors knows.
const char* CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid-argument";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kNotPython:
      return "not-python";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnreadable:
      return "unreadable";
    case ErrorCode::kExited:
      return "exited";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kExists:
      return "exists";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kGpu:
      return "gpu";
  }
  return "unknown";
}

}  // namespace

void Raise(const Error& error) {
  const pybind11::object exception =
      pybind11::module_::import("pystrobe._errors")
          .attr("from_core")(CodeName(error.code), ToStr(error.message), ToStr(error.hint));
  PyErr_SetObject(pybind11::type::of(exception).ptr(), exception.ptr());
  throw pybind11::error_already_set();
}

}  // namespace pystrobe::pyext
