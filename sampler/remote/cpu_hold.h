// SPDX-License-Identifier: Apache-2.0
//
// One thread keeps a CPU from all others while another one works elsewhere.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/base/clock.h"

namespace pystrobe::remote {

/// The asking thread: Ask, wake the holder, SleepUntilSoon, Await, work, End. Both spin: it is for
/// microseconds.
/// [the asking thread and the holder, which is pinned to the CPU]
class CpuHold {
 public:
  /// The holder gives up then, whatever became of who asked: so much the others wait at worst.
  static constexpr Nanoseconds kLongest = std::chrono::microseconds(500);
  /// And so long past its time it is waited for: more than a wake-up takes on a CPU that is ours to
  /// enter.
  static constexpr Nanoseconds kPatience = std::chrono::microseconds(500);

  /// It is wanted at `at` (CLOCK_MONOTONIC). [the asking thread]
  void Ask(Nanoseconds at);
  /// Sleeps until it is soon time. False, and it has not slept, where it is so already. [the asking
  /// thread]
  bool SleepUntilSoon() const;
  /// Waits until the holder has the CPU. False where it does not come, or has given up already:
  /// then it will not hold. [the asking thread]
  bool Await();
  /// Lets the holder go, after an Await that gave true. True where it has run on its CPU all the
  /// time since and nothing else has; false also where it does not answer, as others have the CPU.
  /// [the asking thread]
  bool End();
  /// For how long the holder has had the CPU since this was asked last, however those holds ended;
  /// of those in which it lost the CPU, at most. [the asking thread]
  Nanoseconds TakeStay() { return Nanoseconds(stay_ns_.exchange(0)); }
  /// When it is wanted; max: it is not. [the holder]
  Nanoseconds due() const;
  /// Holds `cpu` if that is wanted and the calling thread is there. [the holder]
  void Serve(int cpu);

 private:
  enum State : uint32_t { kFree, kWanted, kHeld, kEnding, kKept, kLost };

  bool Change(State from, State to) { return state_.compare_exchange_strong(from, to); }

  std::atomic<State> state_{kFree};
  std::atomic<Nanoseconds> at_{Nanoseconds::zero()};
  std::atomic<int64_t> stay_ns_{0};
};

}  // namespace pystrobe::remote
