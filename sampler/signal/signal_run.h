// SPDX-License-Identifier: Apache-2.0
//
// One recording by signals, from the first to the last.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/target.h"
#include "sampler/signal/cpu_event.h"
#include "sampler/signal/dispatcher.h"
#include "sampler/signal/known_codes.h"
#include "sampler/signal/signal_sampler.h"
#include "sampler/signal/watched_thread.h"

namespace pystrobe::signals {

/// Arms threads as they are born, makes samples of what their handlers bring, and accounts for all
/// the CPU time of the process. [one thread, which it does not sample]
class SignalRun {
 public:
  SignalRun(const remote::Target& target, const SignalOptions& options, CpuSource source,
            KnownCodes known, std::unique_ptr<NativeFrames> native, Dispatcher dispatcher,
            RecordingSink& sink);

  ~SignalRun();
  SignalRun(const SignalRun&) = delete;
  SignalRun& operator=(const SignalRun&) = delete;

  /// Begins the recording. Fails where no thread can be armed, or with the sink's error.
  Result<void> Start();
  /// Sleeps a moment and takes what came.
  Result<void> Step();
  /// Ends the signals and the recording.
  Result<void> Finish();

 private:
  using ThreadMap = HashMap<pid_t, std::unique_ptr<WatchedThread>>;
  /// A thread that could not be armed.
  struct Refused {
    Nanoseconds cpu;        ///< as for WatchedThread
    Nanoseconds try_again;  ///< not before
  };

  size_t CountTasks() const;
  void FindThreads(bool first);
  void Watch(pid_t tid, bool first);
  Result<std::unique_ptr<WatchedThread>> Arm(pid_t tid, Nanoseconds cpu);
  void LetGo(WatchedThread& thread);
  void EndSignals();
  void ListStates();
  std::vector<Address> StatesOf(pid_t tid) const;
  void UpdateNames();
  std::string NameOf(pid_t tid) const;
  Result<void> Append();
  /// Makes samples of what handlers have brought.
  void Drain();
  void TakeRecords();
  void RenewNative();
  void Settle();
  void AddUnsampled();
  void UpdateFigures();
  /// What sends the signals, and which threads get none.
  std::string DescribeSource() const;

  const remote::Target& target_;
  SignalOptions options_;
  const CpuSource source_;
  KnownCodes known_;
  const std::unique_ptr<NativeFrames> native_;
  Dispatcher dispatcher_;
  RecordingSink& sink_;

  Tables tables_;
  Quality quality_;
  remote::CodeCache codes_;
  std::optional<remote::StackMerger> merger_;  ///< with native_
  std::vector<Sample> samples_;
  RunContext context_;
  const pid_t own_tid_;
  const Nanoseconds own_cpu_start_;
  Nanoseconds process_cpu_start_{};
  Doorbell news_;
  StateKey state_key_;
  ThreadMap threads_;
  HashMap<pid_t, Refused> refused_;
  uint64_t gone_refused_ = 0;  ///< threads that have ended since, and none was armed
  uint64_t lacking_ = 0;       ///< threads armed that get no signals for their time in the kernel
  std::vector<remote::PyThread> states_;
  std::optional<Error> refusal_;  ///< why a thread could not be armed, the last one
  std::optional<Error> lack_;     ///< why one lacks those signals, the last one
  size_t listed_tasks_ = 0;
  size_t most_events_;
  Nanoseconds next_check_{}, next_find_{}, next_append_{};
  Nanoseconds named_until_{};  ///< threads that were found may have no name yet
};

}  // namespace pystrobe::signals
