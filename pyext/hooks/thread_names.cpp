// SPDX-License-Identifier: Apache-2.0
#include "pyext/hooks/thread_names.h"

#include <unistd.h>

#include "pyext/hooks/held_error.h"

namespace pystrobe::hooks {
namespace {

// threading._active[ident]._name; new references or nullptr.
PyObject* NameObject() {
  PyObject* const threading = PyDict_GetItemString(PyImport_GetModuleDict(), "threading");
  PyObject* const active =
      threading == nullptr ? nullptr : PyObject_GetAttrString(threading, "_active");
  PyObject* const ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
  PyObject* name = nullptr;
  if (active != nullptr && PyDict_Check(active) && ident != nullptr) {
    PyObject* const thread = PyDict_GetItemWithError(active, ident);
    Py_XINCREF(thread);
    PyObject* const attribute = PyUnicode_FromString("_name");
    // Whatever its class makes of attributes.
    if (thread != nullptr && attribute != nullptr)
      name = PyObject_GenericGetAttr(thread, attribute);
    Py_XDECREF(attribute);
    Py_XDECREF(thread);
  }
  Py_XDECREF(ident);
  Py_XDECREF(active);
  return name;
}

}  // namespace

void ThreadNames::Look() {
  const pid_t self = gettid();
  {
    const std::scoped_lock lock(mutex_);
    if (names_.contains(self)) return;
  }
  const HeldError held;
  PyObject* const name = NameObject();
  const char* const text =
      name != nullptr && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (text != nullptr) {
    const std::scoped_lock lock(mutex_);
    names_.emplace(self, text);
  }
  Py_XDECREF(name);
}

std::string ThreadNames::Of(pid_t tid) {
  const std::scoped_lock lock(mutex_);
  const auto known = names_.find(tid);
  return known == names_.end() ? "" : known->second;
}

}  // namespace pystrobe::hooks
