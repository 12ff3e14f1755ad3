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

bool FreedCodes::Start(OnFreed on_freed) {
  if (watcher != kNone) return true;
  told = on_freed;
  watcher = PyCode_AddWatcher(OnEvent);
  if (watcher < 0) PyErr_Clear();
  return watcher >= 0;
}

void FreedCodes::Stop() {
  if (watcher != kNone && PyCode_ClearWatcher(watcher) < 0) PyErr_Clear();
  watcher = kNone;
}

#else

bool FreedCodes::Start(OnFreed) { return false; }
void FreedCodes::Stop() {}

#endif

}  // namespace pystrobe::launch
