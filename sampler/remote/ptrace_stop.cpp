// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/ptrace_stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "profiler/base/proc.h"

namespace pystrobe::remote {
namespace {

// A thread that waits for a CPU stops when it gets one; one that waits for a disk may take seconds.
constexpr Nanoseconds kPatience = std::chrono::milliseconds(100);
// It stands still until we look again: that is short while it may come soon, as long as others have
// its CPU, and what looking takes is little beside it.
constexpr Nanoseconds kShortestNap = std::chrono::microseconds(5);
constexpr Nanoseconds kLongestNap = std::chrono::microseconds(50);
constexpr Nanoseconds kSoon = std::chrono::milliseconds(20);
constexpr Nanoseconds kLateNap = std::chrono::milliseconds(1);

/// A traced thread that ended stays until its tracer took notice; but the end of a child of ours is
/// for whoever reaps it.
bool IsOurChild(pid_t tid) {
  const auto stat = ReadTaskStat(tid, tid);
  const auto status = ReadStatus(tid);
  return stat && status && stat->parent == getpid() && status->process == tid;
}

}  // namespace

bool PtraceStop::Stop(pid_t tid) {
  if (tid_ != 0) {
    // Seized before, and asked to stop.
    if (Look() != State::kStopped) return false;
    if (tid_ == tid) return true;
    Resume();
  }
  // Once: to read that takes as long as all else that is done for a copy.
  if (process_ == 0) {
    const auto status = ReadStatus(tid);
    if (!status) return false;
    process_ = status->process;
  }
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return false;
  tid_ = tid;
  ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  if (WaitUntilStopped() != State::kStopped) return false;
  if (tid_ == tid) return true;
  Resume();
  return false;
}

bool PtraceStop::FollowThroughExec() {
  if (tid_ == process_ || ptrace(PTRACE_INTERRUPT, process_, nullptr, nullptr) != 0) return false;
  tid_ = process_;
  return true;
}

void PtraceStop::Resume() {
  if (tid_ == 0 || Look() != State::kStopped) return;
  // Refused when it has been killed meanwhile: then its end is taken notice of later.
  if (ptrace(PTRACE_DETACH, tid_, nullptr, static_cast<long>(signal_)) == 0) tid_ = 0;
}

PtraceStop::State PtraceStop::WaitUntilStopped() {
  const Nanoseconds asked = MonotonicNow();
  StillRuns(asked);
  Nanoseconds nap = kShortestNap;
  for (;;) {
    const State state = Look();
    const Nanoseconds waited = stopped_since_ - asked;
    if (state != State::kWaiting || waited >= kPatience) return state;
    std::this_thread::sleep_for(waited < kSoon ? nap : kLateNap);
    nap = std::min(2 * nap, kLongestNap);
  }
}

PtraceStop::State PtraceStop::StillRuns(Nanoseconds now) {
  stopped_since_ = now;
  own_cpu_before_ = ThreadCpuNow();
  return State::kWaiting;
}

PtraceStop::State PtraceStop::Look() {
  const Nanoseconds now = MonotonicNow();
  siginfo_t news{};
  int done;
  do {
    done = waitid(P_PID, static_cast<id_t>(tid_), &news,
                  WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL);
  } while (done != 0 && errno == EINTR);
  if (done == 0 && news.si_pid == 0) return StillRuns(now);
  if (done != 0 && FollowThroughExec()) return StillRuns(now);
  if (done != 0 || (news.si_code != CLD_TRAPPED && news.si_code != CLD_STOPPED)) {
    if (done == 0 && !IsOurChild(tid_)) waitpid(tid_, nullptr, __WALL | WNOHANG);
    tid_ = 0;
    return State::kGone;
  }
  // The stop that PTRACE_INTERRUPT asks for is an event, with SIGTRAP or, in a process that is
  // stopped, with what stopped it; without an event it is a signal on its way (ptrace(2)).
  const int event = news.si_status >> 8, signal = news.si_status & 0xff;
  signal_ = event == 0 ? signal : 0;
  stopped_anyway_ = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
  return State::kStopped;
}

}  // namespace pystrobe::remote
