// SPDX-License-Identifier: Apache-2.0
//
// How the interpreter tells of calls. One kind of hooks at a time feeds the one session there is.
// [GIL held]
#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/trace/trace_session.h"
#include "pyext/hooks/functions.h"

namespace pystrobe::hooks {

class Hooks {
 public:
  virtual ~Hooks() = default;
  /// What the calls are seen by, for people.
  virtual const char* name() const = 0;
  /// From here on all threads, those that are yet to begin too, tell of their calls. Fails where
  /// somebody else has the hooks.
  virtual Result<void> Install() = 0;
  /// No thread does any more. Fails where the hooks were no longer ours, with what that means for
  /// the trace.
  virtual Result<void> Remove() = 0;
  /// Installed, they go with their threads from stack to stack from here on, as greenlets do
  /// (FollowStack), which costs each event a little.
  virtual void FollowStacks() = 0;
};

/// PyEval_SetProfile: on any version. `builtins`: functions of C too.
std::unique_ptr<Hooks> MakeSetProfileHooks(bool builtins);
/// The interpreter is about to end. Threads that run on until then, and have a hook that tells
/// nobody, keep it: to take it away they would wait for each other, and one that is ended meanwhile
/// keeps them waiting for ever (free-threaded 3.13); one that has begun to, just before, may. [any
/// thread]
void ProgramEnds();
/// What hooks do that tell nobody, at the begin and the end of each call.
enum class Reads : bool { kNothing, kClock };
inline void ReadClock() {
  asm volatile("" : : "r"(trace::TickClock::Now()));  // so that it is read though nobody wants it
}
/// Those of the calling thread by PyEval_SetProfile: what no other can be below. `builtins`: at the
/// begin and the end of functions of C, too, of which it is told in any case. To measure.
std::unique_ptr<Hooks> MakeEmptySetProfileHooks(bool builtins, Reads reads);
/// The cheapest there are on this version for as much. To measure.
std::unique_ptr<Hooks> MakeEmptyHooks(bool builtins, Reads reads);
#if PY_VERSION_HEX < 0x030C0000
/// Frame evaluation (PEP 523). Where the C stack runs short PyEval_SetProfile takes over.
std::unique_ptr<Hooks> MakeFrameEvalHooks();
/// Whether this release lets every frame be evaluated so.
bool HasFrameEval();
#else
/// sys.monitoring (PEP 669).
std::unique_ptr<Hooks> MakeMonitoringHooks(bool builtins);
#endif

/// These hooks are to FollowStacks once the program has loaded greenlets; nullptr: none are any
/// more.
void AwaitGreenlets(Hooks* hooks);

/// What hooks feed, from before Install until after Remove.
struct Fed {
  trace::TraceSession* session = nullptr;
  Functions* functions = nullptr;
};
extern Fed fed;

/// Whether the innermost frame is that of the event itself, which is about to begin.
enum class Innermost : bool { kIsRunning, kBegins };

/// Of the calling thread, as ThreadTrace::Begin has it: the calls that run, without that of an
/// event that is about to begin. Runs no Python.
std::vector<trace::RunningCall> RunningCalls(Innermost innermost);

/// The calling thread's first event: nullptr where it cannot be traced.
trace::ThreadTrace* BeginThread(Innermost innermost);

inline trace::ThreadTrace* CurrentTrace(Innermost innermost) {
  trace::ThreadTrace* const trace = trace::current_trace;
  return trace != nullptr ? trace : BeginThread(innermost);
}

}  // namespace pystrobe::hooks
