// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/freed_codes.h"

#include <Python.h>

namespace pystrobe::launch {

#if PY_VERSION_HEX >= 0x030C0000

namespace {

constexpr int kNone = -1;
int watcher = kNone;
FreedCodes::OnFreed told = nullptr;

int OnEvent(PyCodeEvent event, PyCodeObject* code) {
  if (event == PY_CODE_EVENT_DESTROY) told(reinterpret_cast<pyabi::Address>(code));
  return 0;
}

}  // namespace

FreedCodes::Told FreedCodes::Start(OnFreed on_freed) {
  if (watcher == kNone) {
    told = on_freed;
    watcher = PyCode_AddWatcher(OnEvent);
    if (watcher < 0) PyErr_Clear();
  }
  return watcher >= 0 ? Told::kOfThisInterpreter : Told::kOfNone;
}

void FreedCodes::Stop() {
  if (watcher != kNone && PyCode_ClearWatcher(watcher) < 0) PyErr_Clear();
  watcher = kNone;
}

#else

namespace {

destructor next = nullptr;  // of the slot before it was ours; null: it never was, or is given back
FreedCodes::OnFreed told = nullptr;

void OnDealloc(PyObject* code) {
  if (told != nullptr) told(reinterpret_cast<pyabi::Address>(code));
  next(code);
}

bool heard = false;

// Whether what is freed now comes here: whoever has taken the slot since may have given it back to
// one from before.
bool IsHeard() {
  heard = false;
  told = [](pyabi::Address) { heard = true; };
  Py_XDECREF(reinterpret_cast<PyObject*>(PyCode_NewEmpty("", "", 1)));
  told = nullptr;
  return heard;
}

}  // namespace

// All interpreters have the one type, and one GIL.
FreedCodes::Told FreedCodes::Start(OnFreed on_freed) {
  if (next == nullptr || !IsHeard()) {
    next = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = OnDealloc;
  }
  told = on_freed;
  return Told::kOfAll;
}

// Where somebody has taken it since it stays: what they have from before is ours.
void FreedCodes::Stop() {
  told = nullptr;
  if (PyCode_Type.tp_dealloc != OnDealloc) return;
  PyCode_Type.tp_dealloc = next;
  next = nullptr;
}

#endif

}  // namespace pystrobe::launch
