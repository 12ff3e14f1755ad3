// SPDX-License-Identifier: Apache-2.0
//
// The calls of one thread while they are traced. What is on the hot path is here, to be inlined
// into the interpreter's hooks: it allocates nothing, takes no lock and makes no system call.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/base/lazy_array.h"
#include "profiler/base/switch_flag.h"
#include "profiler/trace/call_log.h"
#include "profiler/trace/call_tree.h"
#include "profiler/trace/tick_clock.h"

namespace pystrobe::trace {

/// Is asked about functions, now and then. [the thread that is traced]
class KeyWatch {
 public:
  virtual ~KeyWatch() = default;
  /// A function is called where it was not called before. Whether it is to be in the tree; else
  /// what it does counts for its caller, and its own calls are its caller's. The key is to name the
  /// same thing for as long as the trace lives.
  virtual bool Admits(Key key) = 0;
  /// Whether Admits has said no.
  virtual bool IsRefused(Key key) = 0;
  /// Of what it has admitted: whether calls that are too deep are to be counted.
  virtual bool IsOfTheProgram(Key) { return true; }
};

/// A thread's own CPU time, told by the clock of its calls. Between two looks at the kernel's clock
/// it grows as time does where SwitchFlag says that the thread kept its CPU. But what a hypervisor
/// or an interrupt took of that is not charged to the thread, and no flag tells of it: it is asked
/// for now and then, so that it is found near to where it was. [the thread itself]
class OffCpu {
 public:
  static constexpr Nanoseconds kLongestTrust = std::chrono::milliseconds(1);
  /// Where there is no flag to be believed: the clock is asked so often at most, which takes half a
  /// microsecond.
  static constexpr Nanoseconds kTrustWithoutFlag = std::chrono::microseconds(50);

  /// `cpu`: what the thread had used at `now`. `trust`: so long a flag that is set is believed.
  OffCpu(SwitchFlag flag, Ticks trust, Ticks now, Nanoseconds cpu, const TickRate& rate)
      : flag_(flag), rate_(&rate), trust_(trust), last_cpu_(cpu) {
    Trust(now);
  }

  /// Whether the thread had a CPU from the last Follow or SyncTo until `now`, without another look
  /// at the kernel's clock.
  bool IsKnownAt(Ticks now) const { return flag_.IsSet() && now <= trusted_until_; }
  /// The same of what TickClock::ReadTsc gave; false where that is not the clock.
  bool IsKnownAtTsc(Ticks now) const { return flag_.IsSet() && now <= tsc_trusted_until_; }
  /// How long the thread had no CPU since the last Follow or SyncTo, up to `now`, which it may move
  /// to a later moment.
  Ticks Follow(Ticks& now) { return IsKnownAt(now) ? 0 : Look(now); }
  /// The same where it had used `cpu` at `now`. [also another thread, while this one traces
  /// nothing]
  Ticks SyncTo(Ticks now, Nanoseconds cpu);
  /// All of that.
  Ticks ticks() const { return ticks_; }
  uint64_t looks() const { return looks_; }

 private:
  Ticks Look(Ticks& now);
  void Trust(Ticks now) {
    last_ = now;
    trusted_until_ = now + std::min(trust_, ~now);
    tsc_trusted_until_ = TickClock::UsesTsc() ? trusted_until_ : 0;
  }

  SwitchFlag flag_;
  const TickRate* rate_;
  Ticks trust_;
  Ticks ticks_ = 0;
  Ticks last_ = 0;  // when it was last known
  Ticks trusted_until_ = 0;
  Ticks tsc_trusted_until_ = 0;
  Nanoseconds last_cpu_;
  double carried_ = 0;  // CPU time, in ticks, beyond what had passed by then
  uint64_t looks_ = 0;
};

/// A call that had begun before the tracing did.
struct RunningCall {
  Key key = nullptr;
  const void* frame = nullptr;  ///< tells it from the others that run, where ends are not told
};

/// What of a thread's calls is wanted.
struct TraceWishes {
  ChunkTaker* timeline = nullptr;  ///< is told of each call; nullptr: nobody is
  /// So many calls within each other are recorded, not counting those that had begun before the
  /// tracing did. 0: as many as there is room for.
  size_t max_depth = 0;
  bool cpu_time = true;  ///< false: no clock of it is read; the tree has none
  /// Of the tree; outlives it. What goes another way once it is full is left out.
  NodeRoom* room = nullptr;
};

/// Where a traced thread begins.
struct ThreadStart {
  pid_t tid = 0;
  /// The thread was there when the tracing began: its running calls began at that time, when it had
  /// used `cpu`. Else it begins now.
  Ticks at = 0;
  Nanoseconds cpu{};
};

/// [the thread that is traced; others once it traces nothing any more]
class ThreadTrace {
 public:
  /// Deeper calls count for the function at this depth; the stack of such a program has no room in
  /// C before that.
  static constexpr size_t kMostDepth = size_t{1} << 18;

  /// For the calling thread. `watch` and `rate` outlive it, and the timeline, where there is one.
  /// Fails where there is no address space.
  static Result<std::unique_ptr<ThreadTrace>> Begin(const ThreadStart& start,
                                                    std::span<const RunningCall> running,
                                                    KeyWatch& watch, const TickRate& rate,
                                                    const TraceWishes& wishes = {});

  /// A call begins. False: the function is not traced.
  bool Enter(Key key) {
    if (EnterAgain(key)) [[likely]]
      return true;
    CallNode* const node = Push(key);
    if (node == nullptr) return false;
    ++node->calls;
    return true;
  }
  /// A generator or a coroutine goes on, which was counted when it began.
  bool Resume(Key key) {
    if (ResumeAgain(key)) [[likely]]
      return true;
    if (Push(key) == nullptr) return false;
    ++resumed_;
    return true;
  }
  /// What was entered last ends, or a generator waits. Calls above it that end unnoticed end with
  /// it; one that was never entered is passed over. False: the function is not traced.
  bool Leave(Key key) {
    if (LeaveAgain(key)) [[likely]]
      return true;
    return top_->key == key ? LeaveTop() : LeaveOutOfOrder(key);
  }

  /// As these, where it is as it is most often: it was called from there before, last or in the
  /// order in which it is now (CallTree::ChildAgain), and the thread has kept its CPU. They call
  /// nothing. False: it is not so, or nobody knows; then nothing was entered or left.
  bool EnterAgain(Key key) {
    CallNode* const node = PushAgain(key);
    if (node == nullptr) [[unlikely]]
      return false;
    ++node->calls;
    return true;
  }
  bool ResumeAgain(Key key) {
    if (PushAgain(key) == nullptr) [[unlikely]]
      return false;
    ++resumed_;
    return true;
  }
  bool LeaveAgain(Key key) {
    Slot* const slot = top_;
    if (slot->key != key || slot->off_cpu != 0) [[unlikely]]
      return false;
    const Ticks now = TickClock::ReadTsc();
    if (!off_cpu_.IsKnownAtTsc(now)) [[unlikely]]
      return false;
    if (log_.IsOn()) [[unlikely]] {
      if (!log_.HasRoomAt(now)) return false;
      log_.LeaveWithRoom(now);
    }
    slot->node->total += now - slot->begin;
    top_ = slot - 1;
    return true;
  }

  /// As Leave, of functions of C: they end before their caller goes on, so one that is not what was
  /// entered last never was, as some interpreters tell of ends alone (CPython 3.12.0 to 3.12.4).
  bool LeaveInnermost(Key key) {
    if (top_->key == key || IsInnermostTooDeep(key)) return Leave(key);
    if (IsRefused(key)) {
      NotePassedOver();
      return false;
    }
    ++unmatched_;
    return true;
  }

  /// The hooks were told of a begin or an end that is none of what is traced: it costs, too.
  void NotePassedOver() { ++passed_over_; }

  /// What was entered last could not begin: it does not count.
  void TakeBack(Key key) {
    if (top_->key == key) {
      --top_->node->calls;
    } else if (IsInnermostTooDeep(key)) {
      --too_deep_.calls;
    }
    Leave(key);
  }

  /// Of coroutines: what was entered last takes its first step. `frame` tells it from the others of
  /// its function, until it ends.
  void BeginLife(Key key, const void* frame);
  /// It is about to end, and not to wait; before Leave. One that began before the tracing, or on
  /// another thread, is passed over.
  void EndLife(Key key, const void* frame);

  /// For hooks that are not told when calls end that had begun before: whether what is entered next
  /// is called by one of these; then ReturnTo says which. What was within that has ended. Does
  /// nothing where `frame` is none of them; nullptr: they have all ended.
  bool IsAmongRunning() const { return top_ <= last_running_ && beyond_ == 0; }
  void ReturnTo(const void* frame) {
    if (running_.empty() ? frame != nullptr : running_.back().frame != frame) EndRunning(frame);
  }

  /// Greenlets give a thread several stacks by turns; `stack` tells one from the others for as long
  /// as calls are open on it, and is nullptr of one that has had none. Whether what comes next is
  /// on the stack that was told of last.
  bool IsOn(const void* stack) const { return stack_ == stack; }
  /// What comes next is on this stack. Calls that are open on the one before have no time until it
  /// is gone back to. False: it is a new one, which BeginStack tells of.
  bool GoBackTo(const void* stack);
  /// `running`: its open calls, as of Begin.
  void BeginStack(const void* stack, std::span<const RunningCall> running);

  /// For hooks that look for the stack from a frame on: where they need not go on to look.
  const void* frame_of_stack() const { return frame_of_stack_; }
  void NoteFrameOfStack(const void* frame) { frame_of_stack_ = frame; }

  /// For hooks that have more to do for some keys when they are first met: whether NoteMet was told
  /// of it, and of no other that has its place in a small table since.
  bool WasMet(Key key) const { return memo_->met[PlaceOf(key, Memo::kMet)] == key; }
  void NoteMet(Key key) { memo_->met[PlaceOf(key, Memo::kMet)] = key; }

  /// How many calls are open; those that ran before the tracing among them.
  size_t depth() const { return static_cast<size_t>(top_ - slots_.data()) + beyond_; }

  /// Ends all that is open, and gives back what only calls need: a program may have any number of
  /// threads one after the other. `cpu`: what the thread has used until now, where it was asked
  /// for.
  void End(Nanoseconds cpu);

  pid_t tid() const { return tid_; }
  const CallTree& tree() const { return tree_; }
  CallTree& tree() { return tree_; }
  const CallLog& log() const { return log_; }
  Ticks begin() const { return begin_; }
  Ticks end() const { return end_; }
  Ticks off_cpu() const { return off_cpu_.ticks(); }
  /// How often the kernel was asked for the thread's CPU time.
  uint64_t clock_looks() const { return off_cpu_.looks(); }
  /// Calls that began deeper than was wanted, or kMostDepth, of what is in the tree. After End.
  uint64_t left_out() const;
  /// Calls that went another way than those that the tree had when it was full.
  uint64_t unplaced() const { return unplaced_; }
  /// How often generators and coroutines went on, after their first steps.
  uint64_t resumed() const { return resumed_; }
  /// Begins and ends of what is not traced, that were told nevertheless.
  uint64_t passed_over() const { return passed_over_; }
  /// Ends of what was never entered.
  uint64_t unmatched() const { return unmatched_; }
  /// There was no memory for some calls: they are not in the tree, and their time is their
  /// caller's. Or there was none for the timeline, which ended then.
  bool lacked_memory() const { return lacked_memory_ || log_.gave_up(); }
  void NoteLackOfMemory() { lacked_memory_ = true; }

 private:
  struct Slot {
    CallNode* node;
    Ticks begin;
    Key key;  // the node's; nobody's where more is to be done at its end than Leave does
    // The thread had no CPU, as was found out since it began and is no call's within it. 0 of one
    // that is not open.
    Ticks off_cpu;
  };

  ThreadTrace(const ThreadStart& start, LazyArray<Slot> slots, KeyWatch& watch,
              const TickRate& rate, const TraceWishes& wishes);

  // nullptr: not that simple.
  CallNode* PushAgain(Key key) {
    Slot* const slot = top_ + 1;
    CallNode* const node = CallTree::ChildAgain(*top_->node, key);
    if (slot == limit_ || node == nullptr) [[unlikely]]
      return nullptr;
    const Ticks now = TickClock::ReadTsc();
    if (!off_cpu_.IsKnownAtTsc(now)) [[unlikely]]
      return nullptr;
    if (log_.IsOn()) [[unlikely]] {
      if (!log_.HasRoomAt(now)) return nullptr;
      log_.EnterWithRoom(*node, now);
    }
    Open(*slot, *node, now, key);
    return node;
  }
  void Open(Slot& slot, CallNode& node, Ticks now, Key key) {
    slot.node = &node;
    slot.begin = now;
    slot.key = key;
    top_ = &slot;
  }
  // nullptr: it is not traced.
  CallNode* Push(Key key);
  CallNode* PushOrThrow(Key key);
  bool LeaveTop();
  // What is found out now is the innermost call's.
  void Follow(Ticks& now) { top_->off_cpu += off_cpu_.Follow(now); }
  // `slot`, which is open and not the root's, is no more from now on.
  void EndSlot(Slot& slot, Ticks now);
  bool Admits(Key key) { return !IsKnownRefused(key) && AdmitsNew(key); }
  bool AdmitsNew(Key key);
  bool IsRefused(Key key) { return IsKnownRefused(key) || watch_.IsRefused(key); }
  // Of what is refused all calls are asked about, where the hooks cannot be told to leave it out:
  // one compare says it of those that were met last.
  bool IsKnownRefused(Key key) const { return memo_->refused[PlaceOf(key, Memo::kRefused)] == key; }
  static size_t PlaceOf(Key key, size_t places) {
    return (reinterpret_cast<uintptr_t>(key) >> 4) % places;
  }
  CallNode* PushTooDeep(Key key);
  void PutBeyond(Key key);
  // The slot of a call that is too deep, which has its key and no more; nullptr: there is none.
  Slot* SlotTooDeep(size_t i) { return top_ + 1 + i < slots_end() ? top_ + 1 + i : nullptr; }
  bool IsInnermostTooDeep(Key key);
  bool LeaveTooDeep(Key key);
  void EndTooDeep(size_t left);
  void CountTooDeep();
  Slot* DepthLimit();
  void SetLimit() { limit_ = beyond_ > 0 ? top_ + 1 : DepthLimit(); }
  Slot* slots_end() { return slots_.data() + slots_.capacity(); }
  bool LeaveOutOfOrder(Key key);
  void LeaveDownTo(Slot* slot, Ticks now);
  void EndRunning(const void* frame);
  void BeginRunning(std::span<const RunningCall> running, Ticks begin);
  Ticks LeaveStack();

  Slot* top_;  // the innermost open call; the first slot is the root's
  Slot* last_running_;
  OffCpu off_cpu_;
  CallTree tree_;
  CallLog log_;
  Slot* limit_;  // no call is recorded here or behind
  LazyArray<Slot> slots_;
  KeyWatch& watch_;
  const size_t max_depth_;
  const bool has_cpu_time_;
  const pid_t tid_;
  const Ticks begin_;
  Ticks end_ = 0;
  struct Running {
    const void* frame;
    Slot* slot;  // its own, or its caller's where it is not traced
  };
  std::vector<Running> running_;  // before the tracing, where their ends are not told
  // What is open on a stack that is left. It goes back to the slots that it had, as the
  // interpreter's own does: a program may have more greenlets than there is address space for
  // stacks.
  struct Stack {
    std::vector<Slot> slots;  // without the root's
    Slot* top;
    Slot* last_running;
    std::vector<Running> running;
    size_t beyond;
  };
  HashMap<const void*, Stack> other_stacks_;
  const void* stack_ = nullptr;
  const void* frame_of_stack_ = nullptr;
  // Keys, each in its place, until another takes it.
  struct Memo {
    static constexpr size_t kRefused = 1024, kMet = 256;
    std::array<Key, kRefused> refused{};
    std::array<Key, kMet> met{};
  };
  std::unique_ptr<Memo> memo_ = std::make_unique<Memo>();
  struct Life {
    CallNode* node;
    Ticks begin;
  };
  // Some end untold: their frame's memory is that of another then, sooner or later.
  HashMap<const void*, Life> lives_;
  // Open calls that are too deep, or for which the tree has no room. As long as there are any the
  // innermost slot has nobody's key, and the next is the limit.
  size_t beyond_ = 0;
  CallTree functions_too_deep_;  // one below its root for each function that was
  CallNode too_deep_;            // its calls: what began since beyond_ was 0
  CallNode not_counted_;
  uint64_t unplaced_ = 0;
  uint64_t resumed_ = 0;
  uint64_t passed_over_ = 0;
  uint64_t unmatched_ = 0;
  bool lacked_memory_ = false;
};

}  // namespace pystrobe::trace
