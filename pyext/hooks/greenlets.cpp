// SPDX-License-Identifier: Apache-2.0
#include "pyext/hooks/greenlets.h"

#include <atomic>
#include <new>

#include "pyext/hooks/held_error.h"

namespace pystrobe::hooks {
namespace {

std::atomic<Hooks*> waiting = nullptr;

bool AreLoaded() {
  static PyObject* const name = PyUnicode_InternFromString("greenlet");
  // Null where the interpreter is ending; PyImport_GetModuleDict ends the process then.
  PyObject* const modules = PySys_GetObject("modules");
  return name != nullptr && modules != nullptr && PyDict_Check(modules) &&
         PyDict_Contains(modules, name) == 1;
}

// A new reference; nullptr: it was not to be had. `argument`: nullptr: none.
PyObject* CallGreenlet(const char* function, PyObject* argument) {
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "greenlet");
  PyObject* const callable = module == nullptr ? nullptr : PyObject_GetAttrString(module, function);
  PyObject* const result =
      callable == nullptr ? nullptr : PyObject_CallFunctionObjArgs(callable, argument, nullptr);
  Py_XDECREF(callable);
  return result;
}

PyObject* OnSwitch(PyObject* before, PyObject* arguments);
PyMethodDef on_switch = {"trace", &OnSwitch, METH_VARARGS, nullptr};

bool IsOurs(PyObject* function) {
  return function != nullptr && PyCFunction_Check(function) &&
         PyCFunction_GET_FUNCTION(function) == &OnSwitch;
}

// Events tell where a thread is, but not since when: a greenlet may run long without one. What a
// thread's greenlets are traced by is called at each switch; who was there before is called by
// ours.
void WatchSwitches() {
  PyObject* const before = CallGreenlet("gettrace", nullptr);
  if (before != nullptr && !IsOurs(before)) {
    PyObject* const ours = PyCFunction_New(&on_switch, before);
    Py_XDECREF(ours == nullptr ? nullptr : CallGreenlet("settrace", ours));
    Py_XDECREF(ours);
  }
  Py_XDECREF(before);
}

// Of the calling thread. What was set over ours is left; it does no more than to call what was
// there before.
void LeaveSwitches() {
  PyObject* const now = CallGreenlet("gettrace", nullptr);
  if (IsOurs(now)) Py_XDECREF(CallGreenlet("settrace", PyCFunction_GET_SELF(now)));
  Py_XDECREF(now);
}

// Where the thread has gone to.
PyObject* OnSwitch(PyObject* before, PyObject* arguments) {
  trace::ThreadTrace* const trace = trace::current_trace;
  if (trace == nullptr) {
    const HeldError held;
    LeaveSwitches();
    PyErr_Clear();
  } else {
    const PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030B0000
    trace->NoteFrameOfStack(thread->frame);
#endif
    const void* const stack = StackOf(thread);
    if (!trace->IsOn(stack)) FollowTo(*trace, stack, Innermost::kIsRunning);
  }
  if (before == Py_None) Py_RETURN_NONE;
  return PyObject_Call(before, arguments, nullptr);
}

}  // namespace

void AwaitGreenlets(Hooks* hooks) {
  waiting = hooks;
  if (hooks != nullptr) {
    LookForGreenlets();
  } else if (AreLoaded()) {
    const HeldError held;
    LeaveSwitches();
    PyErr_Clear();
  }
}

void LookForGreenlets() {
  Hooks* hooks = waiting.load(std::memory_order_relaxed);
  if (hooks == nullptr || !AreLoaded()) return;
  if (waiting.compare_exchange_strong(hooks, nullptr)) hooks->FollowStacks();
}

void FollowTo(trace::ThreadTrace& trace, const void* stack, Innermost innermost) {
  try {
    if (trace.GoBackTo(stack)) return;
    const HeldError held;
    trace.BeginStack(stack, RunningCalls(innermost));
    if (stack != nullptr) WatchSwitches();
    PyErr_Clear();
  } catch (const std::bad_alloc&) {  // the interpreter knows nothing of exceptions of C++
    trace.NoteLackOfMemory();
  }
}

}  // namespace pystrobe::hooks
