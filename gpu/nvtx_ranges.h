// SPDX-License-Identifier: Apache-2.0
//
// The ranges that are open in each thread of this process, of whatever library opened them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "gpu/name_table.h"
#include "gpu/range_recorder.h"
#include "profiler/base/clock.h"
#include "profiler/base/error.h"

namespace pystrobe::gpu {

class NvtxRanges;

/// What one thread has open. A lock of its own: nearly always it is the thread itself that takes
/// it.
class ThreadRanges {
 public:
  /// Deeper ones are counted, so that each is closed once, and nothing more.
  static constexpr size_t kMaxOpen = 1 << 12;
  static constexpr uint32_t kMaxDomains = 1 << 8;

  /// Of the innermost that is open; 0: none. [any thread]
  uint32_t current() const { return current_.load(std::memory_order_relaxed); }

 private:
  friend class NvtxRanges;
  struct Open {
    std::string name;  // its memory is used again
    uint32_t domain = 0;
    uint64_t id = 0;  // 0: pushed, not started
    RangeRecorder::Open recorded;
  };
  struct Depth {
    uint32_t open = 0;  // that were pushed
    uint32_t deeper = 0;
  };

  // All with the lock.
  bool Add(uint32_t domain, uint64_t id, std::string_view name) noexcept;
  void CloseAt(size_t i, Nanoseconds now);
  bool ClosePushed(uint32_t domain, Nanoseconds now);
  bool CloseStarted(uint64_t id, Nanoseconds now);
  void Record(RangeRecorder& recorder);
  void StopRecording(Nanoseconds now);
  void CountOther();
  void Publish();
  Nanoseconds Now() const { return recorder_ != nullptr ? MonotonicNow() : Nanoseconds{}; }

  std::mutex mutex_;  // of what follows
  std::atomic<uint32_t> current_{0};
  RangeRecorder* recorder_ = nullptr;  // null: nothing is recorded
  uint32_t tid_ = 0;
  uint64_t number_ = 0;
  bool has_ended_ = false;  // the thread, whose ranges others may end yet
  std::vector<Open> open_;  // the first size_ of them, outermost first
  size_t size_ = 0;
  std::array<Depth, kMaxDomains> depths_{};
};

/// The calling thread's; null: it has opened none yet. The model makes of that one load, as it does
/// of trace::current_trace.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadRanges* ranges_of_thread;

/// The one of this process, never destroyed: NVTX calls it to the end. In a child of fork() nothing
/// is open and nothing recorded, and it goes on from there. [any thread, many at once]
class NvtxRanges {
 public:
  /// Fails where there is no address space.
  static Result<NvtxRanges*> OfThisProcess();

  /// Of the innermost range that the calling thread has open, RangeInstances::LabelOf; 0: none, or
  /// nothing is recorded. [async-signal-safe]
  static uint32_t Current() noexcept {
    const ThreadRanges* const ranges = ranges_of_thread;
    return ranges != nullptr ? ranges->current() : 0;
  }

  /// 0 is the default domain; those of a name are one. Ranges of domains that there is no room for
  /// are counted and not kept. Throws std::bad_alloc.
  uint32_t Domain(std::string_view name);
  std::string_view domain(uint32_t number) const { return domains_.text(number); }

  /// A range of the calling thread, until Pop. The level that it is on among those of its domain;
  /// negative where it is not kept. `name`: any bytes; RangeNodes::kMaxName of them are kept.
  int Push(uint32_t domain, std::string_view name) noexcept;
  /// Closes the innermost of the domain that the calling thread has pushed; its level, or negative
  /// where there is none.
  int Pop(uint32_t domain) noexcept;
  /// A range of the calling thread, which any thread may End; 0 where it is not kept.
  uint64_t Start(uint32_t domain, std::string_view name) noexcept;
  void End(uint64_t id) noexcept;

  /// From now on it is recorded; what is open counts from now on. One recording at a time; its
  /// number, or a failure where there is one.
  Result<uint64_t> BeginRecording(const RangeOptions& options);
  /// Starts over. Does nothing to a recording that is not the one that runs, as one of the parent
  /// of this process.
  void RestartRecording(uint64_t recording);
  /// What was found; what is open counts until `end`, CLOCK_MONOTONIC. Nothing of a recording that
  /// is not the one that runs.
  FoundRanges EndRecording(uint64_t recording, Nanoseconds end);
  /// The same without what was found.
  void DropRecording(uint64_t recording);

  /// Of the recording that runs.
  const RangeInstances& instances() const { return recorder_->instances(); }

 private:
  friend struct RangesOfEndedThread;

  NvtxRanges(NameTable domains, std::unique_ptr<RangeRecorder> recorder)
      : domains_(std::move(domains)), recorder_(std::move(recorder)) {}
  ThreadRanges* OfThread();
  ThreadRanges* Enter();
  void LeaveThread();
  void FreeIfDone(ThreadRanges& ranges);
  void StartAll(const RangeOptions& options);
  void StopAll(Nanoseconds end);
  static void HoldForFork();
  static void LetGo();
  static void GoOnInChild();

  NameTable domains_;
  std::unique_ptr<RangeRecorder> recorder_;
  std::atomic<uint64_t> next_id_{1};

  std::mutex mutex_;  // of what follows; before that of a thread
  std::deque<std::unique_ptr<ThreadRanges>> threads_;
  std::vector<ThreadRanges*> free_;  // of threads that have ended
  uint64_t recordings_ = 0;
  uint64_t running_ = 0;  // 0: none
  RangeOptions options_;
};

}  // namespace pystrobe::gpu
