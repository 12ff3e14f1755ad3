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

destructor next = nullptr;  // null: the slot is not ours
FreedCodes::OnFreed told = nullptr;

void OnDealloc(PyObject* code) {
  if (told != nullptr) told(reinterpret_cast<pyabi::Address>(code));
  next(code);
}

}  // namespace

// All interpreters have the one type, and one GIL.
FreedCodes::Told FreedCodes::Start(OnFreed on_freed) {
  told = on_freed;
  if (next == nullptr) {
    next = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = OnDealloc;
  }
  return Told::kOfAll;
}

// Where somebody has taken it since it stays, as theirs calls ours.
void FreedCodes::Stop() {
  told = nullptr;
  if (PyCode_Type.tp_dealloc != OnDealloc) return;
  PyCode_Type.tp_dealloc = next;
  next = nullptr;
}

#endif

}  // namespace pystrobe::launch
