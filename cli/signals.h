// SPDX-License-Identifier: Apache-2.0
//
// Signals while a recording is taken: the first asks to stop and report, the second gives up at
// once and keeps what was recorded. Those that come within 200 ms of the first count as one with
// it. [main thread; one StopSignals at a time]
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>

#include "cli/invoker.h"

namespace pystrobe::cli {

/// Handles SIGINT, SIGTERM and SIGHUP while it lives.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Set by the first signal; may be set by anyone to end the sampling.
  std::atomic<bool>& stop();

  /// Keeps all signals pending until Release(), for the moments in which a child is started.
  void Hold();
  void Release();
  /// The signal mask before Hold(), which the child is to have.
  const sigset_t& mask() const { return mask_; }

  /// Signals go to this child: those sent to us alone are passed on, those of the terminal it got
  /// itself. None stops us until StopForwarding().
  void ForwardTo(pid_t child);
  void StopForwarding();

  /// What a second signal does before it ends the process: it copies the recording from descriptor
  /// `fd` to a new file `path` (`fd` -1: it is in `path` already) and says where it is. Files that
  /// are not kept (unkept_file.h) it removes in any case.
  void KeepOnSecond(int fd, const std::string& path, const std::optional<Invoker>& owner);
  void KeepNothing();

 private:
  sigset_t mask_{};
  bool held_ = false;
};

}  // namespace pystrobe::cli
