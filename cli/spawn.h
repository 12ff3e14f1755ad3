// SPDX-License-Identifier: Apache-2.0
//
// Starting the program of `run`, and waiting for its end.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/invoker.h"
#include "cli/message.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::cli {

/// What a child is given besides.
struct ForChild {
  std::vector<std::string> environment;  ///< "NAME=value"
  int descriptor = -1;                   ///< of ours, that it has too, by the same number
};

/// Starts `command` (found in the PATH) as a child with our stdin, stdout, stderr and process
/// group, as `invoker` if there is one, with signal mask `mask`. Returns when the program was
/// started; from then on SIGCHLD is not ignored here, so that Reap() learns how it ended. Fails
/// with kNotFound when there is none of that name, kPermission when it may not be started. [no
/// other threads yet]
Result<pid_t> Spawn(const std::vector<std::string>& command, const std::optional<Invoker>& invoker,
                    const sigset_t& mask, const ForChild& given = {});

/// Becomes `command`, as Spawn starts it: returns when that fails only.
Error BecomeProgram(const std::vector<std::string>& command, const std::optional<Invoker>& invoker);

/// How a child ended.
struct ChildEnd {
  int status = 0;  ///< as a shell gives it: the program's own, or 128 + the signal that ended it
  int signal = 0;  ///< 0: it ended by itself
};
/// Where nobody can tell: no success.
inline constexpr ChildEnd kEndUnknown{.status = kExitFailure};

/// Watches a child from a thread of its own, one at a time. The child is reaped by Reap() only, so
/// its pid cannot become another process' before.
class ChildWatcher {
 public:
  /// Sets `ended` when the child has ended. Fails when there may be no more threads.
  static Result<std::unique_ptr<ChildWatcher>> Start(pid_t child, std::atomic<bool>& ended);
  /// The child must have ended or be about to.
  ~ChildWatcher();
  ChildWatcher(const ChildWatcher&) = delete;
  ChildWatcher& operator=(const ChildWatcher&) = delete;

  /// Waits at most `timeout`; true when the child has ended.
  bool WaitFor(Nanoseconds timeout);
  /// Waits until the child has ended.
  void Wait();

  /// From now on the watcher alone ends the process: when its child has ended, with the status of
  /// that; Wait() does not return. False when nobody watches, or the child has ended before. [any
  /// thread, async-signal-safe]
  static bool EndProcessWithChild();

 private:
  explicit ChildWatcher(pid_t child) : child_(child) {}
  void Watch(std::atomic<bool>& ended);

  pid_t child_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

/// Waits until the child has ended, and does not reap it: its pid stays its own.
void WaitForEnd(pid_t child);
/// Waits for the end and reaps.
Result<ChildEnd> Reap(pid_t child);
/// What a user should know of the end of a program: "the program exited with status 3", "the
/// program was ended by signal 11 (Segmentation fault)"; empty for success, and for an interrupt,
/// which is the user's own.
std::string EndNote(const ChildEnd& end);

}  // namespace pystrobe::cli
