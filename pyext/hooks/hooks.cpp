// SPDX-License-Identifier: Apache-2.0
#include "pyext/hooks/hooks.h"

#include <frameobject.h>

#include <algorithm>
#include <new>
#include <vector>

#include "pyext/hooks/greenlets.h"
#include "pyext/hooks/held_error.h"
#include "pyext/hooks/no_collection.h"

namespace pystrobe::hooks {

Fed fed;

std::vector<trace::RunningCall> RunningCalls(Innermost innermost) {
  const NoCollection none_collects;  // for the sake of the trace that they are for
  std::vector<trace::RunningCall> running;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  bool passes = innermost == Innermost::kBegins;
  while (frame != nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    if (!passes) {
      running.push_back(
          {Functions::KeyOfCode(reinterpret_cast<PyObject*>(code)), IdentityOf(frame)});
    }
    passes = false;
    Py_DECREF(code);  // the frame has it
    PyFrameObject* const caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  std::ranges::reverse(running);
  return running;
}

namespace {

trace::ThreadTrace* BeginThreadOrThrow(Innermost innermost) {
  const HeldError held;
  const std::vector<trace::RunningCall> running = RunningCalls(innermost);
  // Which may have had the first event.
  trace::ThreadTrace* trace = trace::current_trace;
  if (trace != nullptr || fed.session == nullptr) return trace;
  trace = fed.session->BeginThread(running);
  const void* const stack = StackOf(PyThreadState_Get());
  if (trace != nullptr && stack != nullptr && !trace->GoBackTo(stack)) trace->BeginStack(stack, {});
  return trace;
}

}  // namespace

trace::ThreadTrace* BeginThread(Innermost innermost) {
  if (fed.session == nullptr || fed.session->RefusesThisThread()) return nullptr;
  try {
    return BeginThreadOrThrow(innermost);
  } catch (const std::bad_alloc&) {
    fed.session->NoteLackOfMemory();
    return nullptr;
  }
}

}  // namespace pystrobe::hooks
