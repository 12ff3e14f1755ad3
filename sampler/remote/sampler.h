// SPDX-License-Identifier: Apache-2.0
//
// Sampling another process from outside: what the command line and the Python API call.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/function_ref.h"
#include "profiler/model/recording.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// How a running thread is held still while its frames are copied; docs/architecture.md.
enum class PauseMode {
  kAuto,     ///< preempt where it can be proved, else ptrace
  kPreempt,  ///< take its CPU for an instant
  kPtrace,   ///< PTRACE_INTERRUPT of that one thread
  kNone,     ///< do not pause; samples are marked
};
std::string_view PauseModeName(PauseMode mode);
std::optional<PauseMode> PauseModeByName(std::string_view name);

inline constexpr double kMaxRateHz = 1'000'000;

struct SamplerOptions {
  double rate_hz = 1000;
  /// Lower the rate so that the target is held at most this share of the time; 0 = obey rate_hz.
  double max_overhead = 0;
  PauseMode pause = PauseMode::kAuto;
  /// C and C++ functions too, between Python's: with kAuto and kPtrace, which it comes to.
  bool native = false;
  std::optional<Nanoseconds> duration;
  std::string pystrobe_version;
};

/// Why sampling ended.
enum class EndReason { kDuration, kStopped, kTargetExited, kTargetExecuted };

/// Live figures for a progress line.
struct Progress {
  Nanoseconds elapsed{};
  Quality quality;
  size_t stacks_left = 0;  ///< sampling has ended, and so many stacks wait for their C functions
};

/// Called about twice a second on the thread that runs the sampler. False: the stacks that are left
/// are to do without their C functions.
using ProgressCallback = FunctionRef<bool(const Progress&)>;

/// Samples one process until its duration is over, stop is set, or it ends. It may be this process:
/// then Run belongs on a thread that runs no Python, PauseMode::kPtrace cannot be had, and the
/// sampler's own threads are in no sample. [one thread at a time; stop may be set from any thread
/// or signal handler]
class Sampler {
 public:
  static Result<std::unique_ptr<Sampler>> Attach(pid_t pid, const SamplerOptions& options);
  ~Sampler();

  const TargetInfo& target() const;

  /// Blocks. Calls sink.Begin, Append about every two seconds, Finish. A failing sink ends the run
  /// with its error.
  Result<EndReason> Run(RecordingSink& sink, const std::atomic<bool>& stop,
                        ProgressCallback progress);

  const Quality& quality() const;

 private:
  class Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pystrobe::remote
