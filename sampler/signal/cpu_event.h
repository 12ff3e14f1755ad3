// SPDX-License-Identifier: Apache-2.0
//
// A signal to a thread each time that it has used so much CPU time.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string_view>
#include <utility>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/base/scoped_fd.h"

namespace pystrobe::signals {

/// Not SIGPROF, for which programs have handlers and timers of their own, and which ends a process
/// that has none: one that is pending while exec(2) puts the default action back, say. Of SIGURG
/// the default is to do nothing, and hardly any program handles it.
inline constexpr int kSignal = SIGURG;

/// What counts the CPU time, the better one first.
enum class CpuSource {
  kPerf,      ///< the kernel's task clock as a perf event: any rate
  kPerfUser,  ///< the same without time in the kernel, which is all that perf_event_paranoid 2
              ///< leaves to the unprivileged: a signal that is due there is not sent. A timer sends
              ///< some for that, and also where none is missing: see IsOfTimer
  kTimer,  ///< timer_create on the thread's CPU clock: fires on the scheduler's ticks only, 100 to
           ///< 1,000 a second
};
std::string_view CpuSourceName(CpuSource source);

/// The best source that this process is allowed. Fails with kPermission where there is none, kIo
/// where there is no descriptor left to try.
Result<CpuSource> FindCpuSource();

/// Sends kSignal to one thread of this process. [one thread at a time]
class CpuEvent {
 public:
  /// Begins at once. Fails where there may be no more: kIo with the limit that was met, kExited
  /// where the thread has ended.
  static Result<CpuEvent> Start(CpuSource source, pid_t tid, Nanoseconds period);
  /// Ends it: after that it sends no more, but a signal may be pending.
  ~CpuEvent();
  CpuEvent(CpuEvent&& other) noexcept;
  CpuEvent& operator=(CpuEvent&&) = delete;

  /// The descriptor of a perf event, whose period may be changed; -1 of a timer.
  int fd() const { return event_.get(); }
  /// Why there is no timer beside an event of kPerfUser; nullopt where nothing is missing.
  const std::optional<Error>& lack() const { return lack_; }

 private:
  CpuEvent(ScopedFd event, std::optional<timer_t> timer, std::optional<Error> lack)
      : event_(std::move(event)), timer_(timer), lack_(std::move(lack)) {}

  ScopedFd event_;
  std::optional<timer_t> timer_;
  std::optional<Error> lack_;
};

/// Whether a descriptor is that of an event of ours: a program may close those that it does not
/// know, and have others under their numbers. [async-signal-safe]
bool IsEventOfOurs(int fd);

/// CPU time of a thread of this process; nullopt when it has ended.
std::optional<Nanoseconds> CpuTimeOf(pid_t tid);

/// Whether a signal may be one of ours: what the kernel sends for an event or a timer, and nothing
/// that a process has sent, or the kernel for urgent data. [async-signal-safe]
bool MayBeOurs(const siginfo_t& info);
/// Whether a signal of ours comes from a timer. [async-signal-safe]
inline bool IsOfTimer(const siginfo_t& info) { return info.si_code == SI_TIMER; }
/// The period of a timer for signals every `period`: whole ticks of the scheduler.
Nanoseconds TimerPeriod(Nanoseconds period);

}  // namespace pystrobe::signals
