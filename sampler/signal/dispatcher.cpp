// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/dispatcher.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "sampler/signal/cpu_event.h"
#include "sampler/signal/thread_look.h"

namespace pystrobe::signals {
namespace {

/// Which look is whose, by thread id. An entry is anywhere among kTries places, so that one that is
/// taken out leaves no gap that would hide another.
class Looks {
 public:
  bool Add(pid_t tid, ThreadLook& look) {
    for (size_t i = 0; i < kTries; ++i) {
      Entry& entry = EntryAt(tid, i);
      if (entry.tid.load() != 0) continue;
      entry.look.store(&look);
      entry.event.store(-1);
      entry.tid.store(tid);
      return true;
    }
    return false;
  }

  void Remove(pid_t tid) {
    for (size_t i = 0; i < kTries; ++i) {
      Entry& entry = EntryAt(tid, i);
      if (entry.tid.load() != tid) continue;
      entry.look.store(nullptr);
      entry.tid.store(0);
    }
  }

  void EndLooks() {
    for (Entry& entry : entries_) entry.look.store(nullptr);
  }

  void Clear() {
    EndLooks();
    for (Entry& entry : entries_) entry.tid.store(0);
  }

  ThreadLook* Find(pid_t tid) {
    const Entry* entry = EntryOf(tid);
    return entry == nullptr ? nullptr : entry->look.load();
  }

  void SetEvent(pid_t tid, int fd) {
    if (Entry* entry = EntryOf(tid)) entry->event.store(fd);
  }

  void CloseEvents() {
    for (Entry& entry : entries_) {
      const int fd = entry.event.exchange(-1);
      if (entry.tid.load() != 0 && IsEventOfOurs(fd)) close(fd);
    }
  }

 private:
  struct Entry {
    std::atomic<pid_t> tid{0};
    std::atomic<ThreadLook*> look{nullptr};
    std::atomic<int> event{-1};
  };
  // Thread ids are given out one after the other.
  static constexpr size_t kEntries = 16384, kTries = 16;

  Entry* EntryOf(pid_t tid) {
    for (size_t i = 0; i < kTries; ++i) {
      Entry& entry = EntryAt(tid, i);
      if (entry.tid.load() == tid) return &entry;
    }
    return nullptr;
  }

  Entry& EntryAt(pid_t tid, size_t attempt) {
    return entries_[(static_cast<size_t>(tid) + attempt) % kEntries];
  }

  std::array<Entry, kEntries> entries_;
};

constinit Looks looks;
constinit std::atomic<uint32_t> at_work{0};
constinit std::atomic<bool> in_use{false};
// Set before the handler is; it may be called long after the Dispatcher is gone.
constinit struct sigaction before{};

// Signals that are being passed on just now, by where the kernel put what it says of them.
constinit std::array<std::atomic<const siginfo_t*>, 64> passed_on{};

/// A handler that took our place may pass signals on to us, and we to it once we are installed
/// again.
class Passage {
 public:
  explicit Passage(const siginfo_t* info) {
    for (const auto& other : passed_on) {
      is_second_ |= other.load() == info;
    }
    for (auto& place : passed_on) {
      const siginfo_t* free = nullptr;
      if (is_second_ || place_ != nullptr) break;
      if (place.compare_exchange_strong(free, info)) place_ = &place;
    }
  }
  ~Passage() {
    if (place_ != nullptr) place_->store(nullptr);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  /// The signal is being passed on already.
  bool is_second() const { return is_second_; }

 private:
  bool is_second_ = false;
  std::atomic<const siginfo_t*>* place_ = nullptr;
};

// Where there was no handler there is nothing to do: the default is to ignore it.
void PassOn(int signal, siginfo_t* info, void* context) noexcept {
  const Passage passage(info);
  if (passage.is_second()) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

// Where nobody samples any more but the program has a handler, all signals are its own, but for one
// of ours that a thread had blocked until then. [async-signal-safe]
void OnSignal(int signal, siginfo_t* info, void* context) {
  if (!in_use.load() || !MayBeOurs(*info)) return PassOn(signal, info, context);
  const int error_number = errno;
  at_work.fetch_add(1);
  if (ThreadLook* look = looks.Find(gettid())) {
    look->Take(*static_cast<const ucontext_t*>(context), IsOfTimer(*info));
  }
  at_work.fetch_sub(1);
  errno = error_number;
}

bool IsOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == OnSignal;
}

bool HasHandler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

void PutBack() {
  struct sigaction now{};
  sigaction(kSignal, nullptr, &now);
  if (IsOurs(now) && !HasHandler(before)) sigaction(kSignal, &before, nullptr);
}

}  // namespace

Result<Dispatcher> Dispatcher::Install() {
  if (in_use.exchange(true)) return Fail(ErrorCode::kExists, "signals are handled already");
  struct sigaction now{};
  sigaction(kSignal, nullptr, &now);
  if (IsOurs(now)) return Dispatcher();  // since the last time
  before = now;
  struct sigaction action{};
  action.sa_sigaction = OnSignal;
  // A Go runtime in the process insists on SA_ONSTACK, and its threads have no other stack. System
  // calls that the program's own handler is to interrupt are not restarted.
  const int restart = HasHandler(before) ? before.sa_flags & SA_RESTART : SA_RESTART;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | restart;
  sigfillset(&action.sa_mask);
  sigaction(kSignal, &action, nullptr);
  return Dispatcher();
}

Dispatcher::Dispatcher(Dispatcher&& other) noexcept
    : installed_(std::exchange(other.installed_, false)) {}

Dispatcher::~Dispatcher() {
  if (!installed_) return;
  EndLooks();
  looks.Clear();
  PutBack();
  in_use.store(false);
}

bool Dispatcher::Add(pid_t tid, ThreadLook& look) { return looks.Add(tid, look); }
void Dispatcher::Remove(pid_t tid) { looks.Remove(tid); }

bool Dispatcher::IsQuiet() { return at_work.load() == 0; }

void Dispatcher::EndLooks() {
  looks.EndLooks();
  while (at_work.load() != 0) sched_yield();
}

void Dispatcher::SetEvent(pid_t tid, int fd) { looks.SetEvent(tid, fd); }

// No signal is pending in a child.
void Dispatcher::Abandon() {
  if (!in_use.load()) return;
  looks.CloseEvents();
  looks.Clear();
  at_work.store(0);
  PutBack();
  in_use.store(false);
}

}  // namespace pystrobe::signals
