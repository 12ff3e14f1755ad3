// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/call_tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "profiler/trace/call_table.h"
#include "profiler/trace/trace_recording.h"
#include "pyext/module/errors.h"
#include "pyext/module/gpu_work.h"
#include "pyext/module/text.h"
#include "sampler/remote/target_facts.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

using trace::CalledFunction;
using trace::CallSums;
using trace::CallTree;

using HooksMaker = std::unique_ptr<hooks::Hooks> (*)(bool builtins);

// Those of this version that can tell what is asked for, the cheapest first.
std::vector<HooksMaker> MakersOf(const std::string& engine, [[maybe_unused]] bool builtins) {
  const bool any = engine == "auto";
  std::vector<HooksMaker> makers;
#if PY_VERSION_HEX < 0x030C0000
  if (hooks::HasFrameEval() && ((any && !builtins) || engine == "frame-eval")) {
    makers.push_back([](bool) { return hooks::MakeFrameEvalHooks(); });
  }
#else
  if (any || engine == "monitoring") makers.push_back(&hooks::MakeMonitoringHooks);
#endif
  if (any || engine == "setprofile") makers.push_back(&hooks::MakeSetProfileHooks);
  return makers;
}

void Check(const std::string& engine, bool builtins) {
  if (MakersOf(engine, builtins).empty()) {
    Raise({ErrorCode::kUnsupported,
           engine == "monitoring" ? "sys.monitoring is there from Python 3.12 on"
                                  : "tracing by frame evaluation is for Python 3.9 to 3.11, and "
                                    "not for 3.11.0 to 3.11.3, which do not tell of each frame",
           "Use the engine \"auto\"."});
  }
  if (builtins && engine == "frame-eval") {
    Raise({ErrorCode::kInvalidArgument, "frame evaluation tells of no functions of C",
           "Use the engine \"auto\", or leave builtins out."});
  }
}

// The kernel's clock of a thread's CPU time is named after it (include/linux/posix-timers_types.h,
// make_thread_cpuclock). 0: it has ended.
pid_t TidOf(pthread_t thread) {
  clockid_t clock{};
  return pthread_getcpuclockid(thread, &clock) == 0 ? ~(clock >> 3) : 0;
}

// By their pthread_self, which is what `threading` calls their ident.
std::vector<trace::KnownThread> ThreadsOfPython(bool with_cpu_time) {
  std::vector<trace::KnownThread> threads;
  const auto frames = py::module_::import("sys").attr("_current_frames")().cast<py::dict>();
  for (const auto& [ident, frame] : frames) {
    const auto thread = static_cast<pthread_t>(ident.cast<unsigned long>());
    threads.push_back({TidOf(thread), with_cpu_time ? ThreadCpuOf(thread) : Nanoseconds{}});
  }
  return threads;
}

// In a child made by fork, before Python itself calls anything there: the writer of a timeline
// takes locks without the interpreter's, and the child has them as they were.
void TraceNothing() {
  hooks::fed = {};
  trace::TraceSession::ForgetInChild();
}

// Never freed: the interpreter may be gone by then.
hooks::Hooks* empty_hooks = nullptr;

void SetEmptyHooks(bool fast, bool builtins, bool reads_clock) {
  if (empty_hooks != nullptr) {
    Raise(FailWithHint(ErrorCode::kInvalidArgument, "Remove them first.",
                       "there are empty hooks already: {}", empty_hooks->name())
              .error());
  }
  const auto reads = reads_clock ? hooks::Reads::kClock : hooks::Reads::kNothing;
  auto made = fast ? hooks::MakeEmptyHooks(builtins, reads)
                   : hooks::MakeEmptySetProfileHooks(builtins, reads);
  if (auto done = made->Install(); !done) Raise(done.error());
  empty_hooks = made.release();
}

void RemoveEmptyHooks() {
  const std::unique_ptr<hooks::Hooks> over(std::exchange(empty_hooks, nullptr));
  if (over == nullptr) return;
  if (auto done = over->Remove(); !done) Raise(done.error());
}

// As Pattern has them.
using PatternTexts = std::vector<std::pair<std::string, std::string>>;

std::vector<trace::Pattern> ToPatterns(const PatternTexts& texts) {
  std::vector<trace::Pattern> patterns;
  for (const auto& [text, path] : texts) patterns.push_back({text, path});
  return patterns;
}

Result<ScopedFd> FileFor(std::optional<int> fd, bool timeline) {
  if (!fd) return timeline ? store::CreateTemporaryFile() : store::CreateMemoryFile();
  ScopedFd own(fcntl(*fd, F_DUPFD_CLOEXEC, 3));
  if (!own.valid()) return FailErrno(errno, ErrorCode::kIo, "descriptor {}", *fd);
  return own;
}

}  // namespace

// As it is called now, or was when it was seen.
std::string CallTracer::NameOfThread(pid_t tid) const {
  try {
    const auto threads = py::module_::import("threading").attr("enumerate")().cast<py::list>();
    for (const py::handle thread : threads) {
      const py::object native = thread.attr("native_id");
      if (!native.is_none() && native.cast<pid_t>() == tid) {
        return thread.attr("name").cast<std::string>();
      }
    }
  } catch (const py::builtin_exception&) {
    // The program may have done anything to that module.
  } catch (const py::error_already_set&) {
  }
  const std::string name = functions_->thread_names().Of(tid);
  return name.empty() && tid == getpid() ? "MainThread" : name;
}

void CallTracer::Start(std::optional<int> fd) {
  if (hooks::fed.session != nullptr) {
    Raise({ErrorCode::kInvalidArgument, "calls are traced in this process already",
           "Stop that first: one at a time."});
  }
  if (session_ != nullptr) {
    Raise({ErrorCode::kInvalidArgument, "this tracer has had its trace",
           "Make another: each traces once."});
  }
  Check(options_.engine, options_.builtins);
  static const bool told_of_forks = pthread_atfork(nullptr, nullptr, &TraceNothing) == 0;
  static_cast<void>(told_of_forks);
  begun_in_ = getpid();
  begun_by_ = gettid();
  functions_ =
      std::make_unique<hooks::Functions>(options_.filter, options_.timeline, options_.hidden);
  const bool has_cpu_time = options_.clock != CallClock::kWall;
  const trace::TickRate rate = trace::TickRate::Measure();
  session_ =
      std::make_unique<trace::TraceSession>(ThreadsOfPython(has_cpu_time), *functions_, rate);
  session_->LimitDepth(options_.max_depth);
  if (!has_cpu_time) session_->LeaveCpuTimeOut();
  hooks::fed = {session_.get(), functions_.get()};
  Result<void> started = options_.timeline ? StartTimeline(fd) : Result<void>();
  if (started) started = Install();
  if (!started) {
    hooks::fed = {};
    session_.reset();
    timeline_.reset();
    Raise(started.error());
  }
  runs_ = true;
}

Result<void> CallTracer::StartTimeline(std::optional<int> fd) {
  auto recorder = BeginRecording(fd);
  if (!recorder) return std::unexpected(recorder.error());
  recorder_ = *std::move(recorder);
  auto timeline = trace::CallStream::Start(*recorder_, *this, session_->rate(), session_->begin());
  if (!timeline) return std::unexpected(timeline.error());
  timeline_ = *std::move(timeline);
  session_->TellEachCall(*timeline_);
  return {};
}

Result<std::unique_ptr<store::Recorder>> CallTracer::BeginRecording(std::optional<int> fd) {
  auto file = FileFor(fd, options_.timeline);
  if (!file) return std::unexpected(file.error());
  auto process = DescribeThisProcess();
  if (!process) return std::unexpected(process.error());
  Metadata metadata = trace::MetadataOf(*session_, *std::move(process));
  metadata.timeline = options_.timeline;
  metadata.clock = options_.clock;
  metadata.gpu_failure = gpu_failure_;
  auto recorder = std::make_unique<store::Recorder>(*std::move(file), "the recording", full_);
  if (auto begun = recorder->Begin(metadata); !begun) return std::unexpected(begun.error());
  return recorder;
}

Result<void> CallTracer::Install() {
  std::optional<Error> refused;
  for (const HooksMaker make : MakersOf(options_.engine, options_.builtins)) {
    hooks_ = make(options_.builtins);
    const Result<void> installed = hooks_->Install();
    if (installed) {
      hooks::AwaitGreenlets(hooks_.get());
      return {};
    }
    const Error& why = installed.error();
    if (refused) {
      refused->message += fmt::format("; and by {}: {}", hooks_->name(), why.message);
      refused->hint = why.hint;  // the first one's may be to use this one
    } else {
      refused = why;
    }
  }
  return std::unexpected(*std::move(refused));
}

void CallTracer::Stop() {
  if (getpid() != begun_in_) return Abandon();  // made by a fork that Python knows nothing of
  if (!runs_ || std::exchange(stops_, true)) return;
  hooks::AwaitGreenlets(nullptr);
  if (auto removed = hooks_->Remove(); !removed) trouble_ = removed.error().message;
  session_->Stop();
  hooks::fed = {};
  if (timeline_ != nullptr) {
    Result<void> written;
    {
      const py::gil_scoped_release released;  // what is left to write may take long
      written = timeline_->Stop();
    }
    if (!written) timeline_failure_ = written.error().message;
  }
  runs_ = false;
}

void CallTracer::Abandon() {
  if (!std::exchange(runs_, false)) return;
  hooks::AwaitGreenlets(nullptr);
  static_cast<void>(hooks_->Remove());
  hooks::fed = {};
  session_->Abandon();
  // Neither joined nor freed: the copies of their locks are in no known state.
  static_cast<void>(session_.release());
  static_cast<void>(timeline_.release());
  static_cast<void>(recorder_.release());
}

const trace::TraceSession& CallTracer::Ended() const {
  if (runs_) {
    Raise({ErrorCode::kInvalidArgument, "the tracer runs still",
           "stop() it first, or ask it behind its block"});
  }
  if (session_ == nullptr) {
    Raise({ErrorCode::kInvalidArgument, "there is nothing yet", "start() the tracer first"});
  }
  return *session_;
}

bool CallTracer::IsHidden(trace::Key key, bool was_running, pid_t tid) {
  if (options_.whole_program && was_running && tid == begun_by_) return true;
  return functions_->IsHidden(key);
}

void CallTracer::Hide() {
  Ended();
  for (const auto& thread : session_->threads()) {
    thread->tree().Drop([&](const trace::CallNode& node) {
      return IsHidden(node.key, node.running > 0, thread->tid());
    });
  }
}

py::list CallTracer::Rows(bool merged) {
  Hide();
  const auto ns = [this](trace::Ticks ticks) { return session_->rate().ToTime(ticks).count(); };
  const auto ns_of_cpu = [&](trace::Ticks ticks) -> py::object {
    if (!session_->has_cpu_time()) return py::none();
    return py::int_(ns(ticks));
  };
  const auto sums_of = [&](const CallSums& sums) {
    return py::make_tuple(sums.calls, sums.recursive_calls, sums.running, ns(sums.self),
                          ns(sums.total), ns_of_cpu(sums.self_cpu), ns_of_cpu(sums.total_cpu),
                          sums.finished, ns(sums.lifetime));
  };
  const auto facts_of = [this](std::optional<trace::Key> key) -> py::object {
    if (!key) return py::none();
    const trace::FunctionFacts& facts = functions_->FactsOf(*key);
    return py::make_tuple(ToStr(facts.name), ToStr(facts.file), facts.first_line);
  };
  const auto table_of = [&](std::span<const CallTree* const> trees) {
    py::list rows;
    for (const CalledFunction& row : trace::CallTable(trees)) {
      py::list callers;
      for (const auto& caller : row.callers) {
        callers.append(py::make_tuple(facts_of(caller.key), sums_of(caller.sums)));
      }
      rows.append(py::make_tuple(facts_of(row.key), sums_of(row.sums), callers));
    }
    return rows;
  };
  std::vector<const CallTree*> trees;
  py::list tables;
  for (const auto& thread : session_->threads()) {
    const CallTree* const tree = &std::as_const(*thread).tree();
    trees.push_back(tree);
    if (!merged) {
      tables.append(py::make_tuple(thread->tid(), NameOfThread(thread->tid()),
                                   table_of(std::span(&trees.back(), 1))));
    }
  }
  if (merged) tables.append(py::make_tuple(0, "", table_of(trees)));
  return tables;
}

std::unique_ptr<Recording> CallTracer::MakeRecording(double ns_per_call, std::optional<int> fd) {
  Hide();
  ScopedFd made;
  if (options_.timeline) {
    if (recorder_ != nullptr) recorded_ = Record(std::move(recorder_), ns_per_call);
    if (!recorded_) Raise(recorded_.error());
    made = ValueOrRaise(FileFor(recorded_->get(), options_.timeline));
  } else {
    made = ValueOrRaise(Record(ValueOrRaise(BeginRecording(fd)), ns_per_call));
  }
  auto recording = ValueOrRaise(Recording::Open(std::move(made), "the recording"));
  timeline_failure_ = recording->file().quality().timeline_failure;
  return recording;
}

Result<ScopedFd> CallTracer::Record(std::unique_ptr<store::Recorder> recorder, double ns_per_call) {
  if (gpu_) {
    if (auto done = AppendWork(*gpu_, *recorder); !done) return std::unexpected(done.error());
  }
  const auto done = trace::RecordTrace(
      *session_,
      {engine(), ns_per_call, trouble_, !options_.filter.IsEmpty(), functions_->UnusedPatterns()},
      [this](trace::Key key) -> const trace::FunctionFacts& { return functions_->FactsOf(key); },
      [this](pid_t tid) { return NameOfThread(tid); }, *recorder, timeline_.get());
  if (!done) return std::unexpected(done.error());
  if (const auto& failure = recorder->failure()) moved_because_ = failure->message;
  whole_ = recorder->whole();
  return recorder->TakeFd();
}

py::dict CallTracer::Facts() {
  Hide();
  const trace::TraceSession& session = Ended();
  uint64_t looks = 0, unmatched = 0;
  for (const auto& thread : session.threads()) {
    looks += thread->clock_looks();
    unmatched += thread->unmatched();
  }
  py::dict facts;
  facts["clock"] = trace::TickClock::Name();
  facts["cpu_clock"] = !session.has_cpu_time()   ? "none"
                       : SwitchFlag::Available() ? "rseq"
                                                 : "sampled";
  facts["clock_looks"] = looks;
  facts["unmatched"] = unmatched;
  facts["left_out"] = session.left_out();
  std::vector<std::string> trouble = trace::WhatIsMissing(session, trouble_);
  if (!timeline_failure_.empty())
    trouble.push_back("the timeline ends early: " + timeline_failure_);
  facts["trouble"] = fmt::format("{}", fmt::join(trouble, "; "));
  facts["timeline_waits_ns"] = timeline_ == nullptr ? 0 : timeline_->waited().count();
  facts["refused_threads"] = session.refused_threads();
  facts["duration_ns"] = session.rate().ToTime(session.end() - session.begin()).count();
  return facts;
}

void DefineCallTracer(py::module_& module) {
  module.def("_program_ends", &hooks::ProgramEnds);
  module.def("_set_empty_hooks", &SetEmptyHooks, py::kw_only(), py::arg("fast"),
             py::arg("builtins") = false, py::arg("reads_clock") = false);
  module.def("_remove_empty_hooks", &RemoveEmptyHooks);
  py::class_<CallTracer>(module, "CallTracer")
      .def(py::init([](const std::string& engine, bool builtins, const PatternTexts& include,
                       const PatternTexts& exclude, std::vector<std::string> library,
                       bool whole_program, const std::string& hidden, bool timeline,
                       size_t max_depth, const std::string& clock) {
             const auto by = ClockByName(clock);
             if (!by) Raise({ErrorCode::kInvalidArgument, "no such clock: " + clock, ""});
             return std::make_unique<CallTracer>(TraceOptions{
                 .engine = engine,
                 .builtins = builtins,
                 .filter = {ToPatterns(include), ToPatterns(exclude), std::move(library)},
                 .whole_program = whole_program,
                 .hidden = hidden,
                 .timeline = timeline,
                 .max_depth = max_depth,
                 .clock = *by});
           }),
           py::arg("engine"), py::arg("builtins"), py::arg("include"), py::arg("exclude"),
           py::arg("library"), py::arg("whole_program"), py::arg("hidden"), py::arg("timeline"),
           py::arg("max_depth"), py::arg("clock"))
      .def("set_gpu_failure", &CallTracer::SetGpuFailure, py::arg("why"))
      .def("start", &CallTracer::Start, py::arg("fd"))
      .def("stop", &CallTracer::Stop)
      .def("abandon", &CallTracer::Abandon)
      .def_property_readonly("engine", &CallTracer::engine)
      .def("rows", &CallTracer::Rows, py::arg("merged"))
      .def("recording", &CallTracer::MakeRecording, py::arg("ns_per_call"), py::arg("fd"))
      .def(
          "set_gpu",
          [](CallTracer& self, launch::GpuWorkOfProcess& work) { self.SetGpu(std::move(work)); },
          py::arg("work"))
      .def("moved_because", &CallTracer::moved_because)
      .def("whole", &CallTracer::whole)
      .def("timeline_failure", &CallTracer::timeline_failure)
      .def("facts", &CallTracer::Facts);
}

}  // namespace pystrobe::pyext
