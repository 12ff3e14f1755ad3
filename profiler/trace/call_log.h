// SPDX-License-Identifier: Apache-2.0
//
// What a thread calls, one event after the other, on its way to a timeline. What is on the hot path
// is here.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "profiler/trace/call_tree.h"
#include "profiler/trace/tick_clock.h"

namespace pystrobe::trace {

class CallLog;

/// A way to a function that was gone for the first time.
struct NewNode {
  uint32_t parent = 0;  ///< the number of its caller's node
  Key key = nullptr;
  bool was_running = false;  ///< when the tracing began
};

/// Some of a thread's events. An event is a word: the ticks since the one before in its high half,
/// and in its low half the number of the node that is entered, or one of the two below.
struct CallChunk {
  static constexpr uint32_t kLeave = std::numeric_limits<uint32_t>::max();
  /// No event: what stands in the high half is 2^32 times as much.
  static constexpr uint32_t kFar = kLeave - 1;
  static constexpr size_t kMostWords = 8192;

  const CallLog* log = nullptr;  ///< whose events they are
  pid_t tid = 0;
  Ticks begin = 0;                 ///< what the first one is counted from
  std::vector<NewNode> new_nodes;  ///< numbered on from those of the thread's earlier chunks
  size_t size = 0;
  std::array<uint64_t, kMostWords> words;  // NOLINT(*-member-init): most are never looked at
};

/// Who takes chunks. [any thread]
class ChunkTaker {
 public:
  virtual ~ChunkTaker() = default;
  /// Takes a chunk that is full and gives an empty one. May wait, as there are only so many. Throws
  /// nothing.
  virtual CallChunk* Exchange(CallChunk* full) = 0;
  /// The log's first chunk. Throws where there is no memory, and then knows nothing of the log.
  virtual CallChunk* Open(CallLog& log) = 0;
  /// The log's last chunk, which may be empty.
  virtual void Close(CallLog& log, CallChunk* last) = 0;
};

/// The events of one thread. [that thread; others once it traces nothing any more]
class CallLog {
 public:
  /// `taker` and `tree` are there until Close. nullptr: it keeps nothing.
  CallLog(ChunkTaker* taker, pid_t tid, const CallTree& tree, Ticks begin);
  ~CallLog() {
    if (IsOn()) GiveUp();
  }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  bool IsOn() const { return next_ != nullptr; }
  void Enter(const CallNode& node, Ticks now) { Append(node.number, now); }
  void Leave(Ticks now) { Append(CallChunk::kLeave, now); }
  /// Whether an event is one word of the chunk there is, and not its last; or it keeps nothing.
  bool HasRoomAt(Ticks now) const {
    return !IsOn() ||
           ((now - last_) >> 32 == 0 && next_ + 1 < end_.load(std::memory_order_relaxed));
  }
  /// As Enter and Leave, where it HasRoomAt: they call nothing.
  void EnterWithRoom(const CallNode& node, Ticks now) { AppendWord(node.number, now); }
  void LeaveWithRoom(Ticks now) { AppendWord(CallChunk::kLeave, now); }
  /// Nothing more will come.
  void Close();
  /// There was no memory to tell of new ways: the log ended then.
  bool gave_up() const { return gave_up_; }

  /// Has what there is so far handed over with the thread's next event. [any thread]
  void Hurry() { end_.store(nullptr, std::memory_order_relaxed); }

 private:
  void Append(uint32_t what, Ticks now);
  void AppendWord(uint32_t what, Ticks now) {
    *next_++ = (now - last_) << 32 | what;
    last_ = now;
  }
  void HandOver();
  void Begin(CallChunk* chunk);
  bool Seal();
  void GiveUp();

  uint64_t* next_ = nullptr;
  std::atomic<uint64_t*> end_{nullptr};  // room for two words is behind it
  Ticks last_;
  ChunkTaker* const taker_;
  const CallTree& tree_;
  CallChunk* chunk_ = nullptr;
  const pid_t pid_;
  const pid_t tid_;
  size_t told_nodes_ = 1;  // of the tree's; the root needs not be told
  bool gave_up_ = false;
};

}  // namespace pystrobe::trace
