// SPDX-License-Identifier: Apache-2.0
//
// Signals while a recording is taken: the first asks to stop and report, the second takes a
// shortcut where there is one, else it gives up at once and keeps what was recorded. Those that
// come within 200 ms of the first count as one with it. [main thread; one StopSignals at a time]
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <atomic>

namespace pystrobe::cli {

/// From now on a signal that ends the process removes files that nothing came of before.
void CleanUpOnSignals();

/// Handles, while it lives, every signal that would end the process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Set by the first signal; may be set by anyone to end the sampling.
  std::atomic<bool>& stop();

  /// There is something to do that may take long and can be left out: the next signal asks for that
  /// in place of giving up, once.
  void OfferShortcut();
  bool shortcut_taken() const;

  /// Keeps all signals pending until Release(), for the moments in which a child is started.
  void Hold();
  void Release();
  /// The signal mask before Hold(), which the child is to have.
  const sigset_t& mask() const { return mask_; }

  /// Signals go to this child: those sent to us alone are passed on, those of the terminal it got
  /// itself. None stops us until StopForwarding(), but for the end of our CPU time; the next after
  /// that is then the second.
  void ForwardTo(pid_t child);
  void StopForwarding();
  /// The child, or 0. [any thread, async-signal-safe]
  static pid_t forwarded_to();

 private:
  std::array<struct sigaction, _NSIG> old_actions_{};
  sigset_t mask_{};
  bool held_ = false;
};

}  // namespace pystrobe::cli
