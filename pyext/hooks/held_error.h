// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

namespace pystrobe::hooks {

/// Takes the exception that the interpreter has under way, if any, and gives it back in the end:
/// what is asked of it meanwhile may raise and clear others. [GIL held]
class HeldError {
 public:
  HeldError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~HeldError() { PyErr_Restore(type_, value_, traceback_); }
  HeldError(const HeldError&) = delete;
  HeldError& operator=(const HeldError&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

}  // namespace pystrobe::hooks
