// SPDX-License-Identifier: Apache-2.0
//
// One look at a thread with its C functions.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/native/binaries.h"
#include "sampler/native/native_code.h"
#include "sampler/native/unwind.h"
#include "sampler/remote/merged_stack.h"
#include "sampler/remote/sampled_thread.h"
#include "sampler/remote/stopped_stack.h"
#include "sampler/remote/thread_table.h"
#include "sampler/remote/tracer.h"

namespace pystrobe::remote {

/// Stops one thread after the other by ptrace, each for as long as it takes to copy its registers
/// and its stack. [one thread]
class NativeDump {
 public:
  /// `context` outlives it. Fails where the target's mappings cannot be read.
  static Result<std::unique_ptr<NativeDump>> Begin(RunContext& context);

  /// A frame of the merged stack.
  struct Entry {
    FrameId frame;
    Address raw = 0;  ///< where a Python frame lies; 0: a C function
  };
  struct Look {
    bool stopped = false;       ///< else there is nothing
    bool is_whole = false;      ///< C functions up to the thread's first, each in its place
    Address lock_holder = 0;    ///< the thread state that had the lock then; 0: none
    std::vector<Entry> frames;  ///< leaf first
  };

  /// Takes the thread's stack as SampledThread::TakeCopy, too. `lock`: of its interpreter.
  Look LookAt(SampledThread& thread, LockDomain& domain, const Tick& tick);
  /// The same of a thread without Python.
  Look LookAt(pid_t tid);

  /// How long threads were held, in all.
  Nanoseconds held() const { return held_; }

 private:
  NativeDump(RunContext& context, native::Binaries binaries, std::unique_ptr<Tracer> tracer);
  /// Copies it; false where the thread could not be stopped.
  bool Stop(pid_t tid, CopyJob* job);
  Look Merge(std::span<const pyabi::RawFrame> frames, StackId base, Nanoseconds now);

  RunContext& context_;
  native::Binaries binaries_;
  native::RuleCache rules_{binaries_};
  native::NativeCode code_;
  StackMerger merger_;
  std::unique_ptr<Tracer> tracer_;
  CopyJob job_;
  StoppedStack stack_;
  std::vector<Address> instructions_;
  bool reached_first_ = false;
  Nanoseconds held_{};
};

}  // namespace pystrobe::remote
