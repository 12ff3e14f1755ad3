// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <unistd.h>

#include <cerrno>

#include "cli/give_up.h"
#include "cli/unkept_file.h"
#include "profiler/base/clock.h"
#include "profiler/base/function_ref.h"

namespace pystrobe::cli {
namespace {

// Those that end a process unless it asks for something else; not those that tell of a fault.
constexpr std::array kEnding{SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGUSR1,   SIGUSR2, SIGALRM,
                             SIGPROF, SIGVTALRM, SIGXCPU, SIGPOLL, SIGSTKFLT, SIGPWR};
// `timeout` and others signal a process and its group at once, and mean one stop.
constexpr int64_t kOneStopNs = 200'000'000;

// A handler has no other way to reach its data.
std::atomic<bool> stop_flag;
std::atomic<int64_t> first_stop_ns;  // 0: none yet
enum class Shortcut { kNone, kOffered, kTaken };
std::atomic<Shortcut> shortcut;
std::atomic<pid_t> forward_child;

void ForEachEnding(FunctionRef<void(int)> act) {
  for (const int signal : kEnding) act(signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) act(signal);
}

/// The terminal sends to the whole foreground group; but that it is gone, to its session's leader
/// first, and to the group when that has ended. [async-signal-safe]
bool GroupHasIt(int signal, const siginfo_t& info) {
  if (info.si_code <= 0) return false;
  if (signal == SIGHUP) return getsid(0) != getpid();
  return signal == SIGINT || signal == SIGQUIT;
}

[[noreturn]] void GiveUpFor(int signal) {
  GiveUp();
  ::_exit(128 + signal);
}

bool TakeShortcut() {
  Shortcut expected = Shortcut::kOffered;
  return shortcut.compare_exchange_strong(expected, Shortcut::kTaken);
}

/// When there was one before, and zero if this is the first.
int64_t NoteStop() {
  int64_t first = 0;
  first_stop_ns.compare_exchange_strong(first, MonotonicNow().count());
  return first;
}

void Stop(int signal) {
  const int64_t first = NoteStop();
  const int64_t now = MonotonicNow().count();
  stop_flag.store(true);
  if (first != 0 && now - first < kOneStopNs) return;
  if (TakeShortcut()) {
    first_stop_ns = now;  // those that belong to this one are no giving up either
  } else if (first != 0) {
    GiveUpFor(signal);
  }
}

/// [async-signal-safe]
void Handle(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  const pid_t child = forward_child.load();
  if (signal == SIGXCPU) {
    // Our time, not the child's; the kernel repeats it every second until the hard limit.
    stop_flag.store(true);
  } else if (child > 0) {
    if (!GroupHasIt(signal, *info)) ::kill(child, signal);
    NoteStop();
    TakeShortcut();
  } else {
    Stop(signal);
  }
  errno = saved_errno;
}

/// [async-signal-safe]
void CleanUp(int signal) {
  UnkeptFile::RemoveAll();
  // SA_RESETHAND: the next one has its own effect, and is delivered when this handler is left.
  ::raise(signal);
}

/// nohup and background jobs of a shell without job control ask for this.
void LeaveIfIgnored(int signal, const struct sigaction& old) {
  if (old.sa_handler == SIG_IGN) sigaction(signal, &old, nullptr);
}

}  // namespace

void CleanUpOnSignals() {
  struct sigaction action{}, old{};
  action.sa_handler = CleanUp;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ForEachEnding([&](int signal) {
    sigaction(signal, &action, &old);
    LeaveIfIgnored(signal, old);
  });
}

StopSignals::StopSignals() {
  stop_flag = false;
  first_stop_ns = 0;
  shortcut = Shortcut::kNone;
  forward_child = 0;
  ExpectRecording();
  struct sigaction action{};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO;  // no SA_RESTART: a wait is to end
  sigemptyset(&action.sa_mask);
  ForEachEnding([&](int signal) { sigaddset(&action.sa_mask, signal); });
  ForEachEnding([&](int signal) {
    struct sigaction& old = old_actions_[static_cast<size_t>(signal)];
    sigaction(signal, &action, &old);
    LeaveIfIgnored(signal, old);
  });
}

StopSignals::~StopSignals() {
  Release();
  StopForwarding();
  // What was asked for has been done: another signal of the same request is not to end us with what
  // it means to others, just before we end.
  const bool was_asked = first_stop_ns.load() != 0;
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ForEachEnding([&](int signal) {
    const struct sigaction& old = old_actions_[static_cast<size_t>(signal)];
    sigaction(signal, was_asked ? &ignore : &old, nullptr);
  });
  SaveNothing();
}

std::atomic<bool>& StopSignals::stop() { return stop_flag; }

void StopSignals::OfferShortcut() {
  Shortcut expected = Shortcut::kNone;
  shortcut.compare_exchange_strong(expected, Shortcut::kOffered);
}

bool StopSignals::shortcut_taken() const { return shortcut.load() == Shortcut::kTaken; }

void StopSignals::Hold() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &mask_);
  held_ = true;
}

void StopSignals::Release() {
  if (held_) sigprocmask(SIG_SETMASK, &mask_, nullptr);
  held_ = false;
}

void StopSignals::ForwardTo(pid_t child) { forward_child = child; }

void StopSignals::StopForwarding() { forward_child = 0; }

pid_t StopSignals::forwarded_to() { return forward_child.load(); }

}  // namespace pystrobe::cli
