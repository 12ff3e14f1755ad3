// SPDX-License-Identifier: Apache-2.0
#include <Python.h>
#include <frameobject.h>
#include <opcode.h>

#include "pyext/hooks/hooks.h"

namespace pystrobe::hooks {
namespace {

bool with_builtins = false;

#if PY_VERSION_HEX >= 0x030B0000
// In each of the forms that the interpreter makes of it.
bool IsResume(int opcode) {
  switch (opcode) {
    case RESUME:
#ifdef RESUME_QUICK
    case RESUME_QUICK:
#endif
#ifdef RESUME_CHECK
    case RESUME_CHECK:
#endif
#ifdef INSTRUMENTED_RESUME
    case INSTRUMENTED_RESUME:
#endif
      return true;
    default:
      return false;
  }
}
#endif

// A call of a generator begins once, and goes on as often as it yields.
bool GoesOn(PyFrameObject* frame, const PyCodeObject* code) {
  constexpr int kGenerators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  if ((code->co_flags & kGenerators) == 0) return false;
#if PY_VERSION_HEX < 0x030B0000
  return frame->f_lasti >= 0;
#else
  // It begins at a RESUME whose operand has its last two bits zero (Python/bytecodes.c). Closed, or
  // thrown something, it goes on where it yielded.
  const int at = PyFrame_GetLasti(frame);
  if (at < 0) return true;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(code->co_code_adaptive) + at;
  return !IsResume(bytes[0]) || (bytes[1] & 3) != 0;
#endif
}

void OnFunctionOfC(PyObject* callable, bool begins) {
  trace::ThreadTrace* const trace = CurrentTrace(Innermost::kIsRunning);
  if (trace == nullptr) return;
  const trace::Key key = fed.functions->KeyOfCallable(callable);
  begins ? trace->Enter(key) : trace->Leave(key);
}

int OnEvent(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
  switch (what) {
    case PyTrace_CALL:
    case PyTrace_RETURN: {
      const bool begins = what == PyTrace_CALL;
      PyCodeObject* const code = PyFrame_GetCode(frame);
      const trace::Key key = Functions::KeyOfCode(reinterpret_cast<PyObject*>(code));
      trace::ThreadTrace* const trace =
          CurrentTrace(begins ? Innermost::kBegins : Innermost::kIsRunning);
      if (trace != nullptr) {
        if (!begins) {
          trace->Leave(key);
        } else if (GoesOn(frame, code)) {
          trace->Resume(key);
        } else {
          trace->Enter(key);
        }
      }
      Py_DECREF(code);
      break;
    }
    case PyTrace_C_CALL:
      if (with_builtins) OnFunctionOfC(argument, true);
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      if (with_builtins) OnFunctionOfC(argument, false);
      break;
    default:
      break;
  }
  return 0;
}

void SetInAllThreads(Py_tracefunc function) {
#if PY_VERSION_HEX >= 0x030C0000
  PyEval_SetProfileAllThreads(function, nullptr);
#else
  PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; thread != nullptr; thread = PyThreadState_Next(thread)) {
    // What somebody has set since is left.
    if (function == nullptr && thread->c_profilefunc != &OnEvent) continue;
    if (_PyEval_SetProfile(thread, function, nullptr) < 0) PyErr_Clear();
  }
#endif
}

// What `threading` has each new thread call with its first event: that thread's hooks are set then,
// and the event told.
PyObject* OnNewThread(PyObject*, PyObject* arguments) {
  PyObject *frame, *event, *argument;
  if (!PyArg_UnpackTuple(arguments, "trace", 3, 3, &frame, &event, &argument)) return nullptr;
  if (fed.session == nullptr) Py_RETURN_NONE;
  PyEval_SetProfile(&OnEvent, nullptr);
  if (PyUnicode_CompareWithASCIIString(event, "call") == 0) {
    OnEvent(nullptr, reinterpret_cast<PyFrameObject*>(frame), PyTrace_CALL, nullptr);
  }
  Py_RETURN_NONE;
}
PyMethodDef on_new_thread = {"trace", &OnNewThread, METH_VARARGS, nullptr};

class SetProfileHooks final : public Hooks {
 public:
  explicit SetProfileHooks(bool builtins) { with_builtins = builtins; }
  ~SetProfileHooks() override { Py_XDECREF(before_); }

  const char* name() const override { return "PyEval_SetProfile"; }

  Result<void> Install() override {
    PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; thread != nullptr; thread = PyThreadState_Next(thread)) {
      if (thread->c_profilefunc == nullptr) continue;
      return FailWithHint(ErrorCode::kUnsupported,
                          "Stop it first (sys.setprofile(None)), or leave it the calls.",
                          "another profiler has the hook of a thread (sys.setprofile)");
    }
    PyObject* const threading = PyImport_ImportModule("threading");
    if (threading != nullptr) {
      before_ = PyObject_GetAttrString(threading, "_profile_hook");
      PyObject* const hook = PyCFunction_New(&on_new_thread, nullptr);
      PyObject* const done = PyObject_CallMethod(threading, "setprofile", "O", hook);
      Py_XDECREF(done);
      Py_XDECREF(hook);
      Py_DECREF(threading);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    SetInAllThreads(&OnEvent);
    return {};
  }

  void Remove() override {
    SetInAllThreads(nullptr);
    PyObject* const threading = PyImport_ImportModule("threading");
    if (threading != nullptr) {
      PyObject* const done =
          PyObject_CallMethod(threading, "setprofile", "O", before_ != nullptr ? before_ : Py_None);
      Py_XDECREF(done);
      Py_DECREF(threading);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
  }

 private:
  PyObject* before_ = nullptr;
};

}  // namespace

std::unique_ptr<Hooks> MakeSetProfileHooks(bool builtins) {
  return std::make_unique<SetProfileHooks>(builtins);
}

}  // namespace pystrobe::hooks
