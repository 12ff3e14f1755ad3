// SPDX-License-Identifier: Apache-2.0
//
// The thread that follows copied stacks to their callers in machine code, and finds the functions.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "sampler/native/binaries.h"
#include "sampler/native/native_code.h"
#include "sampler/native/unwind.h"
#include "sampler/remote/merged_stack.h"
#include "sampler/remote/stopped_stack.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// A thread's stack as it was copied, and its Python frames.
struct UnwindOrder {
  ThreadIndex thread{};
  NativeCopy copy;
  std::vector<uint8_t> begins_run;  ///< RunBeginnings
};

/// What was made of it.
struct UnwoundStack {
  std::vector<Address> instructions;        ///< leaf first
  std::vector<native::MergedFrame> frames;  ///< of these and of the Python frames, leaf first
  native::MergeResult result = native::MergeResult::kCut;
  /// Where those of `frames` lie that were in no stack before this one, or not since `epoch`
  /// began: what was told of instructions earlier is no longer true then.
  std::vector<std::pair<Address, native::NativePlace>> places;
  uint32_t epoch = 0;
};

/// To find a function's name takes microseconds, but for the first one of a file, whose debug
/// information may take seconds: longer than samples can wait. So orders are filled on a thread of
/// our own, in the order in which they come. [one thread: the pacer]
class Unwinder {
 public:
  /// `target` outlives it. Fails where its mappings cannot be read, or there may be no more
  /// threads.
  static Result<std::unique_ptr<Unwinder>> Start(const Target& target);
  /// Orders that wait are not filled any more; the one under way is waited for.
  ~Unwinder();

  void Submit(UnwindOrder order);
  /// What has been done since.
  std::vector<UnwoundStack> TakeDone();
  /// Waits until nothing is left to do, for `most` at most; how many orders are left.
  size_t Wait(Nanoseconds most);
  /// Forgets the orders that are left.
  void Drop();

 private:
  Unwinder(const Target& target, native::Binaries binaries);
  void Main();
  void FindInterpreter();
  void Refresh();
  UnwoundStack Fill(const UnwindOrder& order);
  void AddPlaces(UnwoundStack& into);

  const Target& target_;
  native::Binaries binaries_;
  native::RuleCache rules_{binaries_};
  native::NativeCode code_;
  CodeMerger merger_{code_};
  HashMap<uint32_t, native::RunHistory> histories_;  // by thread
  HashMap<Address, uint32_t> told_;                  // in which epoch
  uint32_t epoch_ = 0;
  Nanoseconds next_refresh_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnwindOrder> orders_;
  std::vector<UnwoundStack> done_;
  bool busy_ = false;
  bool drop_ = false;  // what is under way
  bool end_ = false;
  std::thread thread_;
};

}  // namespace pystrobe::remote
