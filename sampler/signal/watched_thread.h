// SPDX-License-Identifier: Apache-2.0
//
// One thread while it is sampled, as the thread sees it that makes samples of its records.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/model/recording.h"
#include "sampler/remote/code_cache.h"
#include "sampler/remote/merged_stack.h"
#include "sampler/remote/stack_path.h"
#include "sampler/signal/cpu_event.h"
#include "sampler/signal/known_codes.h"
#include "sampler/signal/native_frames.h"
#include "sampler/signal/raw_sample.h"
#include "sampler/signal/thread_look.h"

namespace pystrobe::signals {

/// What all threads of one run share; outlives them.
struct RunContext {
  const remote::Target& target;
  Tables& tables;
  remote::CodeCache& codes;
  KnownCodes& known;
  NativeFrames* native;         ///< null: Python frames only
  remote::StackMerger* merger;  ///< with `native`
  Quality& quality;
  std::vector<Sample>& samples;  ///< where samples go
  CpuSource source{};            ///< of all threads' signals
  uint64_t known_epoch = 0;      ///< of the code cache, as `known` was begun
  Nanoseconds start{};           ///< of the recording: Sample::time_ns counts from it
  Nanoseconds period{};          ///< of CPU time, from signal to signal
};

/// [one thread]
class WatchedThread {
 public:
  /// `cpu`: what it had used when the recording, or its own life, began.
  WatchedThread(RunContext& context, pid_t tid, Nanoseconds cpu, std::unique_ptr<ThreadLook> look);

  pid_t tid() const { return tid_; }
  ThreadIndex index() const { return index_; }
  ThreadLook& look() { return *look_; }

  /// Its signals begin.
  Result<void> Arm();
  /// It has a place in the recording; what it has used until now is in no stack. Once, after Arm
  /// and before the first Drain.
  void Begin(ThreadIndex index);
  void Disarm() { event_.reset(); }
  /// Of its perf event; -1: it has none.
  int event_fd() const { return event_ ? event_->fd() : -1; }
  /// Why it gets no signals for its time in the kernel; nullopt where it does.
  const std::optional<Error>& lack() const { return lack_; }

  /// Makes samples of the records that have come; with native frames, all but their stacks.
  void Drain();
  /// Finds the stack of the oldest sample that lacks it; false where none does. May take long, as
  /// files are read for it.
  bool Settle();
  /// Accounts for what it used after its last sample, `cpu` in all. After the last Drain and
  /// Settle.
  void Finish(Nanoseconds now, std::optional<Nanoseconds> cpu);

  /// As ThreadLook::SetStates.
  void SetStates(std::vector<Address> states);

 private:
  /// A sample that lacks its stack, and what that is made of.
  struct Unsettled {
    Sample sample;
    uint64_t kernel_ns;  ///< of its CPU time: in the kernel, in which no signal came
    StackId base;
    std::vector<remote::NamedFrame> frames;
    std::vector<Address> instructions;
    bool is_whole;
  };

  void Take(const RecordParts& record);
  void TakeCodes(const RecordParts& record, Nanoseconds now);
  /// The stack of `frames_`, which reach the thread's first where they are `complete`. False where
  /// a frame could not be named.
  bool TakeStack(bool complete, Nanoseconds now);
  /// Names those frames, for Settle, and has their native frames found. Returns as TakeStack.
  bool TakeParts(const RecordParts& record, bool complete, Nanoseconds now);
  uint64_t WithoutSignal(const RawSample& head, uint64_t used) const;
  void Count(const RecordParts& record, bool whole);
  void AddUnseen(Nanoseconds now, uint64_t cpu_ns);
  Sample SampleAt(Nanoseconds now, uint64_t cpu_ns, uint8_t flags) const;

  RunContext& context_;
  const pid_t tid_;
  ThreadIndex index_{};
  uint64_t cpu_ns_;  ///< that samples account for, in all
  bool has_stack_ = false;
  std::vector<Address> states_;
  std::vector<pyabi::RawFrame> frames_;  ///< of the last record
  std::vector<pyabi::RawFrame> fresh_;
  remote::StackPath path_;
  StackId stack_ = kEmptyStack;  ///< of the last record
  std::vector<Address> native_;  ///< as the last record has them
  native::RunHistory runs_;
  std::deque<Unsettled> unsettled_;
  std::vector<remote::SeenCode> seen_;
  std::unique_ptr<ThreadLook> look_;
  std::optional<CpuEvent> event_;
  std::optional<Error> lack_;
};

}  // namespace pystrobe::signals
