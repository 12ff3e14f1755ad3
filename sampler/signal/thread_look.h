// SPDX-License-Identifier: Apache-2.0
//
// A thread as its signal handler sees it: where it stands, in Python.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "profiler/model/deadline_series.h"
#include "sampler/pyabi/chain_start.h"
#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/walk.h"
#include "sampler/signal/captures.h"
#include "sampler/signal/cpu_event.h"
#include "sampler/signal/doorbell.h"
#include "sampler/signal/event_log.h"
#include "sampler/signal/known_codes.h"
#include "sampler/signal/native_look.h"
#include "sampler/signal/own_memory.h"
#include "sampler/signal/raw_sample.h"
#include "sampler/signal/record_ring.h"
#include "sampler/signal/state_key.h"

namespace pystrobe::signals {

/// All that a handler needs, made beforehand. While it runs its thread stands still, so that the
/// frames are those of one moment; no other thread's frames are looked at. Memory is read by
/// OwnMemory alone, so that no address can fault. [Take: the thread's handler,
/// async-signal-safe; records(), SetStates: another thread, at the same time]
class ThreadLook {
 public:
  /// Thread states of one thread that are looked at: one for each interpreter it has entered.
  static constexpr size_t kMostStates = 4;

  struct Options {
    pid_t pid;
    const pyabi::Layout& layout;  ///< outlives it
    const KnownCodes& known;      ///< outlives it
    Doorbell& news;               ///< outlives it; rung where a name or a rule is wanted soon
    StateKey& state_key;          ///< outlives it
    Nanoseconds period;           ///< from signal to signal
    const KnownRules* rules;      ///< outlives it; null: without native frames
    Address stack_end;            ///< as NativeLook::Make
  };
  static Result<std::unique_ptr<ThreadLook>> Make(const Options& options);

  /// The states of this thread, the youngest interpreter's first. More than kMostStates are not
  /// looked at.
  void SetStates(std::span<const Address> states);

  /// Where signals come from, once. Without one, or with a timer, no look is repeated.
  void SetEvent(const CpuEvent& event);

  /// Looks where the thread stands, and writes a record of it. Now and then the period is drawn
  /// anew, as a fixed one aliases with programs that are periodic themselves. A thread that stands
  /// within the interpreter's own push or pop is looked at again when it has run for some
  /// microseconds more. `context`: what the signal interrupted. A timer's signal is not needed
  /// where an event has sent one meanwhile.
  void Take(const ucontext_t& context, bool of_timer);

  RecordRing& records() { return records_; }
  /// Looks that found no room, since this was asked last, and that no record tells of.
  uint32_t TakeLost() { return lost_.exchange(0); }

 private:
  using Frames = LazyArray<pyabi::RawFrame>;

  ThreadLook(const Options& options, OwnMemory memory, Frames frames, Frames previous,
             LazyArray<Address> loop_frames, LazyArray<FoundCode> codes, Captures captures,
             std::optional<NativeLook> native, RecordRing records);

  pyabi::WalkStatus LookAtFrames();
  pyabi::ChainStart* CurrentChain();
  bool LearnKey();
  bool IsListed(Address state) const;
  bool IsOurs(Address state);
  pyabi::ChainStart* ChainOf(Address state, pyabi::ChainStart& place);
  bool IsCurrent(Address state);
  pyabi::WalkStatus WalkFrom(pyabi::ChainStart& chain, Address first);
  struct Moment {
    Nanoseconds time, cpu;
  };
  static Nanoseconds CpuSince(const Moment& begin);
  bool IsOverdue(Nanoseconds since_last) const;
  bool WasInKernel(const ucontext_t& context);
  void DrawPeriod(bool was_changed, Nanoseconds look);
  bool TryAgain(pyabi::WalkStatus status);
  /// True where there are some that have no names yet.
  bool LookAtCodes();
  bool WasFound(Address code) const;
  uint32_t CountCommon() const;
  /// The record, but for what the handler took; null where there is no room for it.
  std::byte* Write(RawSample head);
  /// `spent`: by the handler, for all tries.
  void Commit(std::byte* record, Nanoseconds spent);
  void WriteNative(const RawSample& head, std::byte* into);

  const pyabi::Layout& layout_;
  const KnownCodes& known_;
  Doorbell& news_;
  StateKey& state_key_;
  std::array<std::atomic<Address>, kMostStates> states_{};
  std::atomic<uint32_t> lost_{0};
  std::atomic<int> event_fd_{-1};

  // The handler's own.
  OwnMemory memory_;
  std::array<pyabi::ChainStart, kMostStates> chains_;
  pyabi::ChainStart unlisted_;  ///< of a state that is none of states_
  Frames frames_;
  Frames previous_;  ///< of the record before
  LazyArray<Address> loop_frames_;
  LazyArray<FoundCode> codes_;
  Captures captures_;
  std::optional<NativeLook> native_;
  EventLog log_;                ///< with native_
  bool is_unreadable_ = false;  ///< what tells whether the thread runs Python
  bool is_cut_ = false;         ///< the stack has more frames than there is room for
  uint64_t generation_ = 0;
  Nanoseconds last_{};  ///< CPU time at the last look
  uint64_t period_ns_;  ///< in force
  DeadlineSeries periods_;
  uint32_t signals_ = 0;
  uint32_t tries_ = 0;   ///< looks that found no whole stack, one after the other
  Nanoseconds tried_{};  ///< CPU time they took

  RecordRing records_;
};

}  // namespace pystrobe::signals
