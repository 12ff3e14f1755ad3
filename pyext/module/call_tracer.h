// SPDX-License-Identifier: Apache-2.0
//
// The calls of this process, traced. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "profiler/store/recorder.h"
#include "profiler/trace/call_filter.h"
#include "profiler/trace/call_stream.h"
#include "profiler/trace/trace_session.h"
#include "pyext/hooks/functions.h"
#include "pyext/hooks/hooks.h"
#include "pyext/launch/gpu_trace.h"
#include "pyext/module/recording.h"

namespace pystrobe::pyext {

struct TraceOptions {
  std::string engine;  ///< "auto", "setprofile", "frame-eval" or "monitoring"
  bool builtins = false;
  trace::CallFilter filter;
  /// What runs as the tracing begins is what loads the program, and left out like `hidden`.
  bool whole_program = false;
  /// Functions of files below are left out, with all that they call; empty: none.
  std::string hidden;
  bool timeline = false;  ///< each call by itself, written as they come
  size_t max_depth = 0;   ///< as trace::TraceWishes has it
  CallClock clock = CallClock::kBoth;
};

/// From Start to Stop, once.
class CallTracer : private trace::CallStream::Functions {
 public:
  explicit CallTracer(TraceOptions options) : options_(std::move(options)) {}
  ~CallTracer() override { Stop(); }
  CallTracer(const CallTracer&) = delete;
  CallTracer& operator=(const CallTracer&) = delete;

  /// As Metadata has it. Before Start.
  void SetGpuFailure(std::string why) { gpu_failure_ = std::move(why); }
  /// `fd`: a file for the timeline, which stays the caller's; none: one without a name.
  void Start(std::optional<int> fd);
  void Stop();
  /// In a child made by fork: its calls are not traced.
  void Abandon();
  std::string engine() const { return hooks_ == nullptr ? options_.engine : hooks_->name(); }

  // After Stop.
  /// What a GPU did meanwhile, to be in the recording.
  void SetGpu(launch::GpuWorkOfProcess work) { gpu_ = std::move(work); }
  /// [(tid, [(function, file, line, calls, recursive, running, self, total, self_cpu, total_cpu,
  /// finished, lifetime, [caller rows])])], times in ns, None of the CPU where that was not read;
  /// tid 0 where `merged`.
  pybind11::list Rows(bool merged);
  /// `ns_per_call`: what tracing cost the program, about. `fd`: a file to hold it, which stays the
  /// caller's; none: memory; of a timeline that of Start. Where the file does not take it memory
  /// does, and moved_because() says why.
  std::unique_ptr<Recording> MakeRecording(double ns_per_call, std::optional<int> fd);
  const std::optional<std::string>& moved_because() const { return moved_because_; }
  /// All is in the recording.
  bool whole() const { return whole_; }
  /// Why the timeline ends before the calls do, as far as that is known by now; empty: it does not.
  const std::string& timeline_failure() const { return timeline_failure_; }
  pybind11::dict Facts();

 private:
  Result<void> Install();
  Result<void> StartTimeline(std::optional<int> fd);
  Result<std::unique_ptr<store::Recorder>> BeginRecording(std::optional<int> fd);
  std::string NameOfThread(pid_t tid) const;
  const trace::TraceSession& Ended() const;
  void Hide();
  bool IsHidden(trace::Key key, bool was_running, pid_t tid);
  Result<ScopedFd> Record(std::unique_ptr<store::Recorder> recorder, double ns_per_call);

  trace::FunctionFacts FactsOf(trace::Key key) override { return functions_->FactsOf(key); }
  bool Hides(const trace::NewNode& node, pid_t tid) override {
    return IsHidden(node.key, node.was_running, tid);
  }

  TraceOptions options_;
  pid_t begun_in_ = 0, begun_by_ = 0;
  std::unique_ptr<hooks::Functions> functions_;
  std::unique_ptr<trace::TraceSession> session_;
  std::unique_ptr<hooks::Hooks> hooks_;
  bool runs_ = false, stops_ = false;
  std::optional<std::string> moved_because_;
  bool whole_ = true;
  std::optional<launch::GpuWorkOfProcess> gpu_;
  std::string gpu_failure_;
  std::string trouble_;  // why calls may be missing, for people
  std::string timeline_failure_;

  std::atomic<bool> full_{false};              // the recorder's, which nobody need heed here
  std::unique_ptr<store::Recorder> recorder_;  // of the timeline, until it is recorded
  std::unique_ptr<trace::CallStream> timeline_;
  Result<ScopedFd> recorded_;  // what it is in then
};

void DefineCallTracer(pybind11::module_& module);

}  // namespace pystrobe::pyext
