// SPDX-License-Identifier: Apache-2.0
//
// What traced functions are called, and that they stay what they are while they are traced.
#pragma once

#include <Python.h>

#include <mutex>

#include "profiler/base/hash_map.h"
#include "profiler/trace/thread_trace.h"
#include "profiler/trace/trace_recording.h"

namespace pystrobe::hooks {

/// Keys are code objects, which are kept alive from the first sight on, and for functions of C
/// their definitions, of which there is one for all the objects that are made of it. [GIL held;
/// several threads at once where there is none]
class Functions final : public trace::KeyWatch {
 public:
  ~Functions() override;

  static trace::Key KeyOfCode(PyObject* code) { return code; }
  /// Of a callable that is no Python function; it is named by what it is the first time.
  trace::Key KeyOfCallable(PyObject* callable);

  void OnNewKey(trace::Key key) override;
  /// Of a key that was seen.
  const trace::FunctionFacts& FactsOf(trace::Key key);

 private:
  std::mutex mutex_;
  HashMap<trace::Key, PyObject*> kept_;  // nullptr: nothing has to be
  HashMap<trace::Key, trace::FunctionFacts> facts_;
};

}  // namespace pystrobe::hooks
