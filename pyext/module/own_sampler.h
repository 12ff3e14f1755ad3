// SPDX-License-Identifier: Apache-2.0
//
// This process sampled from threads of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "profiler/store/recorder.h"
#include "pyext/launch/gpu_trace.h"
#include "pyext/module/recording.h"
#include "sampler/remote/sampler.h"
#include "sampler/signal/signal_sampler.h"

namespace pystrobe::pyext {

struct OwnSamplerOptions {
  bool by_cpu_time = false;  ///< by signals, as each thread uses CPU time; else by elapsed time
  double rate_hz = 1000;
  double max_overhead = 0;   ///< of sampling by elapsed time
  bool native = false;       ///< C functions too, of sampling by CPU time
  bool only_caller = false;  ///< by CPU time, of no thread but the one that calls Start
  std::string version;
  std::string gpu_failure;  ///< as Metadata has it
  std::optional<int> fd;    ///< takes the recording while it is made; nullopt: memory does
};

/// Samples this process until Stop. The sampler's threads run no Python, take no lock
/// of the interpreter and have signals blocked. A child made by fork has none of them: there
/// the object must be given up with Abandon. [one thread at a time; any, without the GIL]
class OwnSampler {
 public:
  explicit OwnSampler(OwnSamplerOptions options) : options_(std::move(options)) {}
  /// Stops, and drops the recording.
  ~OwnSampler();
  OwnSampler(const OwnSampler&) = delete;
  OwnSampler& operator=(const OwnSampler&) = delete;

  /// Returns when every thread there is is watched, by wall time the first look made; or fails.
  /// Once.
  Result<void> Start();
  /// What a GPU does is kept in the recording now and then, for the case that it is cut off. Before
  /// Start; `trace` outlives this.
  void WatchGpu(const launch::GpuTrace& trace) { watched_ = &trace; }
  /// Ends the sampling; the recording is open for SetGpu until Stop. After Start.
  void End();
  /// What a GPU did meanwhile, to be in the recording. Before Stop.
  void SetGpu(launch::GpuWorkOfProcess work);
  /// Ends the sampling and gives what was recorded. After Start.
  Result<std::unique_ptr<Recording>> Stop();
  /// In a child made by fork: the threads that this knows of are the parent's.
  void Abandon();
  /// In any child made by fork, also of a parent whose sampler was about to start or to stop.
  static void ForgetParent() { signals::SignalSampler::Abandon(); }
  /// Why the sampling ended early, and the recording may not be where it was to be, but in memory.
  /// After Stop.
  std::optional<Error> MovedBecause() const;
  /// All that was recorded is there. After Stop.
  bool whole() const { return recorder_ == nullptr || (recorder_->whole() && !failure_); }

 private:
  class Sink;

  Result<void> Open();
  Result<ScopedFd> OpenRecording() const;
  void Main();
  Result<void> Sample();
  Result<void> KeepGpu();
  std::optional<launch::GpuWorkOfProcess> TakeGpu();
  void Join();

  OwnSamplerOptions options_;
  std::unique_ptr<signals::SignalSampler> by_cpu_;
  std::unique_ptr<remote::Sampler> by_wall_;
  std::unique_ptr<store::Recorder> recorder_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  // Of the thread, once it is started.
  const launch::GpuTrace* watched_ = nullptr;  // null: nothing is kept, or no more
  Nanoseconds watched_since_{}, keep_at_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false, sampled_ = false, ended_ = false;
  bool awaits_gpu_ = false;
  std::optional<Error> failure_;
  std::optional<launch::GpuWorkOfProcess> gpu_;
};

}  // namespace pystrobe::pyext
