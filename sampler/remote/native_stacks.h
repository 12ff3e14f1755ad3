// SPDX-License-Identifier: Apache-2.0
//
// Stacks with C and C++ functions of a target that is sampled: known a moment after the sample is.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/model/recording.h"
#include "sampler/remote/merged_stack.h"
#include "sampler/remote/stopped_stack.h"
#include "sampler/remote/unwinder.h"

namespace pystrobe::remote {

/// [one thread: the pacer]
class NativeStacks {
 public:
  /// Of stacks that wait for their functions.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  /// All outlive it. Fails as Unwinder::Start.
  static Result<std::unique_ptr<NativeStacks>> Start(const Target& target, Tables& tables,
                                                     Quality& quality,
                                                     size_t most_bytes = kMostBytes);

  /// Takes what was copied of a thread. Returns what stands for its stack until that is made; it is
  /// for Made alone to ask what that is. Where more than `most_bytes` wait the stack is made of
  /// Python frames alone.
  StackId Add(ThreadIndex thread, StackId base, std::vector<NamedFrame> frames, NativeCopy copy);

  /// Makes those stacks that can be made.
  void Make();
  /// Waits until all can be made, as long as it takes to read what debug information they need, but
  /// for `most` at most; how many still cannot.
  size_t Wait(Nanoseconds most) { return unwinder_->Wait(most); }
  /// Makes all, those that wait of Python frames alone. The one under way is given up as well, but
  /// is waited for when this goes.
  void MakeWithoutWaiting();
  /// The stack that `stack` stands for, or itself: it is not made yet, or stands for none.
  StackId Made(StackId stack) const;
  static bool IsMade(StackId stack) { return (ToIndex(stack) & kPending) == 0; }
  /// Nobody will ask about those that were made until now.
  void Forget();

 private:
  /// A StackId with this is the number of an Add.
  static constexpr uint32_t kPending = uint32_t{1} << 31, kNumber = kPending - 1;

  struct Part {
    StackId base;
    std::vector<NamedFrame> frames;
    size_t bytes = 0;  // of it and of its order
  };

  NativeStacks(Tables& tables, Quality& quality, std::unique_ptr<Unwinder> unwinder,
               size_t most_bytes)
      : tables_(tables),
        quality_(quality),
        unwinder_(std::move(unwinder)),
        most_bytes_(most_bytes),
        ids_(tables) {}
  StackId WithoutNative(const Part& part);
  StackId Finish(const Part& part, const UnwoundStack& unwound);
  void RemoveFirstPart();

  Tables& tables_;
  Quality& quality_;
  std::unique_ptr<Unwinder> unwinder_;
  const size_t most_bytes_;
  NativeFrameIds ids_;
  uint32_t epoch_ = 0;  // of ids_
  std::deque<Part> parts_;
  size_t waiting_bytes_ = 0;  // of those
  std::vector<StackId> made_;
  uint32_t first_ = 0;  // the number of made_'s first one
};

}  // namespace pystrobe::remote
