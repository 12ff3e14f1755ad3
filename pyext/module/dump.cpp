// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/dump.h"

#include "pyext/module/core.h"
#include "pyext/module/errors.h"
#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using py::literals::operator""_a;

py::list ToList(const std::vector<pyabi::Local>& locals) {
  py::list list;
  for (const pyabi::Local& local : locals) {
    list.append(py::dict("name"_a = ToStr(local.name), "value"_a = ToStr(local.value),
                         "is_argument"_a = local.is_argument));
  }
  return list;
}

py::list ToList(const std::vector<remote::DumpFrame>& frames) {
  py::list list;
  for (const remote::DumpFrame& frame : frames) {
    list.append(py::dict("function"_a = ToStr(frame.function), "file"_a = ToStr(frame.file),
                         "line"_a = frame.line, "native"_a = frame.is_native,
                         "locals"_a = ToList(frame.locals)));
  }
  return list;
}

}  // namespace

py::dict TakeDump(pid_t pid, bool locals, const std::string& pause, bool native) {
  const std::optional<remote::PauseMode> mode = remote::PauseModeByName(pause);
  if (!mode) {
    Raise({ErrorCode::kInvalidArgument, fmt::format("no such way to pause: '{}'", pause),
           "one of auto, preempt, ptrace, none"});
  }
  Result<remote::Dump> result = [&] {
    const py::gil_scoped_release released;
    return remote::TakeDump(pid, {.locals = locals, .pause = *mode, .native = native});
  }();
  const remote::Dump dump = ValueOrRaise(std::move(result));

  py::list threads;
  for (const remote::DumpThread& thread : dump.threads) {
    threads.append(py::dict("tid"_a = thread.tid, "name"_a = ToStr(thread.name),
                            "interpreter"_a = thread.interpreter, "holds_gil"_a = thread.holds_gil,
                            "state"_a = ToStr({&thread.state, 1}), "proved"_a = thread.proved,
                            "complete"_a = thread.complete, "native_whole"_a = thread.native_whole,
                            "frames"_a = ToList(thread.frames)));
  }
  return py::dict("pid"_a = dump.target.pid, "executable"_a = ToPath(dump.target.executable),
                  "command"_a = ToPaths(dump.target.command), "threads"_a = std::move(threads),
                  "held_ns"_a = dump.held_ns);
}

}  // namespace pystrobe::pyext
