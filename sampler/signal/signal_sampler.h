// SPDX-License-Identifier: Apache-2.0
//
// Sampling this process by its own CPU time: each thread is sent a signal when it has used so much
// of it, and its handler looks where it stands.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "profiler/base/error.h"
#include "profiler/model/recording.h"

namespace pystrobe::signals {

struct SignalOptions {
  double rate_hz = 1000;  ///< samples for each second of CPU time, of each thread
  bool native = false;    ///< C functions too
  /// Of this one thread, of which the CPU time is then all that is accounted for; nullopt: of all.
  std::optional<pid_t> only_thread;
  std::string pystrobe_version;
};

/// Samples all threads of this process, or one, those that run Python and others, but for the one
/// that calls Run. Samples have CPU time and no wall time. One at a time in a process. [one thread]
class SignalSampler {
 public:
  /// Fails as remote::Target::Open does, and where the kernel sends no such signals.
  static Result<std::unique_ptr<SignalSampler>> Open(const SignalOptions& options);
  ~SignalSampler();

  /// Blocks until `stop`, which may be set by any thread or handler; on a thread that runs no
  /// Python and has signals blocked. Calls sink.Begin, Append about every two seconds, Finish. A
  /// sink that fails ends it with its error.
  Result<void> Run(RecordingSink& sink, const std::atomic<bool>& stop);

  /// In a child made by fork, while Run was at work in the parent: lets go of what is the parent's.
  /// The object is of no more use there, and must not be destroyed.
  static void Abandon();

 private:
  struct Impl;
  explicit SignalSampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pystrobe::signals
