// SPDX-License-Identifier: Apache-2.0
//
// What traced functions are called, and that they stay what they are while they are traced.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "profiler/base/hash_map.h"
#include "profiler/trace/call_filter.h"
#include "profiler/trace/thread_trace.h"
#include "profiler/trace/trace_recording.h"
#include "pyext/hooks/thread_names.h"

namespace pystrobe::hooks {

/// Keys are code objects, which are kept alive from the first sight on, and for functions of C
/// their definitions, of which there is one for all the objects that are made of it: where that is
/// part of no library its type is kept alive, or else the first such object. [GIL held;
/// several threads at once where there is none]
class Functions final : public trace::KeyWatch {
 public:
  /// `names_at_once`: FactsOf asks the interpreter nothing, so that any thread may call it, without
  /// the GIL. `hidden`: functions of files below are no part of the program; empty: all are.
  Functions(trace::CallFilter filter, bool names_at_once, std::string hidden)
      : filter_(std::move(filter)),
        unused_(filter_),
        names_at_once_(names_at_once),
        hidden_(std::move(hidden)) {}
  ~Functions() override;

  static trace::Key KeyOfCode(PyObject* code) { return code; }
  /// As KeyOfCallable, where it takes no call to know; for what need not have been met. nullptr: it
  /// does.
  static trace::Key QuickKeyOfCallable(PyObject* callable) {
    if (Py_IS_TYPE(callable, &PyCFunction_Type)) {
      return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
      return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
    }
    return nullptr;
  }
  /// Of a callable that is no Python function; it is named by what it is the first time. `trace`:
  /// that of the calling thread, which knows those that it has met. nullptr: there is no memory.
  trace::Key KeyOfCallable(PyObject* callable, trace::ThreadTrace& trace);

  bool Admits(trace::Key key) override;
  bool IsRefused(trace::Key key) override;
  bool IsOfTheProgram(trace::Key key) override;
  /// Of a key that was seen: whether it is a function of a file that is hidden. As FactsOf.
  bool IsHidden(trace::Key key);
  ThreadNames& thread_names() { return thread_names_; }
  /// Of the filter: what fits nothing that was called until now.
  std::vector<std::string> UnusedPatterns();
  /// Of a key that was seen.
  const trace::FunctionFacts& FactsOf(trace::Key key);

 private:
  bool IsKept(trace::Key key);
  // `object`: what keeps the key alive; nullptr: nothing has to.
  void Keep(trace::Key key, PyObject* object, PyObject* callable);

  const trace::CallFilter filter_;
  trace::UnusedPatterns unused_;
  const bool names_at_once_;
  const std::string hidden_;
  ThreadNames thread_names_;
  std::mutex mutex_;
  HashMap<trace::Key, PyObject*> kept_;  // nullptr: nothing has to be
  HashMap<trace::Key, std::unique_ptr<const trace::FunctionFacts>> facts_;  // do not move
  HashMap<trace::Key, bool> admits_;  // where there is a filter
};

}  // namespace pystrobe::hooks
