// SPDX-License-Identifier: Apache-2.0
//
// The calls of this process, traced. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

#include "profiler/trace/call_filter.h"
#include "profiler/trace/trace_session.h"
#include "pyext/hooks/functions.h"
#include "pyext/hooks/hooks.h"
#include "pyext/module/recording.h"

namespace pystrobe::pyext {

/// From Start to Stop, once.
class CallTracer {
 public:
  /// `engine`: "auto", "setprofile", "frame-eval" or "monitoring". `whole_program`: what runs as
  /// the tracing begins is what loads the program, and left out like `hidden`.
  CallTracer(std::string engine, bool builtins, trace::CallFilter filter, bool whole_program)
      : engine_(std::move(engine)),
        builtins_(builtins),
        filter_(std::move(filter)),
        whole_program_(whole_program) {}
  ~CallTracer() { Stop(); }
  CallTracer(const CallTracer&) = delete;
  CallTracer& operator=(const CallTracer&) = delete;

  void Start();
  void Stop();
  /// In a child made by fork: its calls are not traced.
  void Abandon();
  std::string engine() const { return hooks_ == nullptr ? engine_ : hooks_->name(); }

  // After Stop. Functions of files below `hidden` are left out, with all that they called; an
  // empty one hides nothing.
  /// [(tid, [(function, file, line, calls, recursive, running, self, total, self_cpu, total_cpu,
  /// [caller rows])])], times in ns; tid 0 where `merged`.
  pybind11::list Rows(bool merged, const std::string& hidden);
  /// `ns_per_call`: what tracing cost the program, about. `fd`: a file to hold it, which stays the
  /// caller's; none: memory. Where the file does not take it memory does, and moved_because() says
  /// why.
  std::unique_ptr<Recording> MakeRecording(const std::string& version, const std::string& hidden,
                                           double ns_per_call, std::optional<int> fd);
  const std::optional<std::string>& moved_because() const { return moved_because_; }
  pybind11::dict Facts() const;

 private:
  Result<void> Install();
  std::string NameOfThread(pid_t tid) const;
  const trace::TraceSession& Ended() const;
  void Hide(const std::string& below);

  std::string engine_;
  bool builtins_;
  trace::CallFilter filter_;
  bool whole_program_;
  pid_t begun_by_ = 0;
  std::unique_ptr<hooks::Functions> functions_;
  std::unique_ptr<trace::TraceSession> session_;
  std::unique_ptr<hooks::Hooks> hooks_;
  bool runs_ = false;
  std::optional<std::string> moved_because_;
  std::string trouble_;  // why calls may be missing, for people
};

void DefineCallTracer(pybind11::module_& module);

}  // namespace pystrobe::pyext
