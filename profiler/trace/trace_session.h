// SPDX-License-Identifier: Apache-2.0
//
// Tracing of the calls of this process: its threads, from the first event of each to the end.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/trace/thread_trace.h"

namespace pystrobe::trace {

/// The calling thread's trace; nullptr: it has none yet. Hooks read it at each event.
///
/// The initial-exec model makes of that one load, where a library that is loaded later would call a
/// function each time; it takes eight of the bytes that the C library keeps free for such.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadTrace* current_trace;

/// What may already run when the tracing begins.
struct KnownThread {
  pid_t tid = 0;      // pthread_self is used again as soon as a thread has ended
  Nanoseconds cpu{};  ///< that it had used
};

/// One session at a time; hooks must be in place only between its beginning and Stop.
/// [any thread; Stop and what follows it while no thread is in a hook]
class TraceSession {
 public:
  /// Nodes of all trees together: 120 to 190 MB.
  static constexpr size_t kMostNodes = size_t{1} << 20;

  /// `threads`: those there are now. `watch` outlives the session and must do with several threads
  /// at once where the interpreter has no lock. `rate`: measured before the threads' CPU time was
  /// looked at, as that uses some of it.
  TraceSession(std::vector<KnownThread> threads, KeyWatch& watch,
               const TickRate& rate = TickRate::Measure());

  /// From here on `timeline` is told of each call, until Stop. Before the first event.
  void TellEachCall(ChunkTaker& timeline) { wishes_.timeline = &timeline; }
  /// As TraceWishes::max_depth. Before the first event.
  void LimitDepth(size_t depth) { wishes_.max_depth = depth; }
  /// No CPU time is read. Before the first event; what KnownThread has of it needs not be known.
  void LeaveCpuTimeOut() { wishes_.cpu_time = false; }
  ~TraceSession() { Stop(); }
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  /// The calling thread's first event: makes current_trace. `running`: its open calls, outermost
  /// first, without that of the event. Where there is no memory the thread is not traced, which is
  /// counted.
  ThreadTrace* BeginThread(std::span<const RunningCall> running);

  /// BeginThread has no trace for the calling thread, and need not be asked again: there was no
  /// memory, or it is going away.
  bool RefusesThisThread() const;

  /// Ends the traces of all threads. Once; further calls do nothing.
  void Stop();
  /// In a child made by fork: the other threads are not there, nor is anything to be kept.
  void Abandon();
  /// Right after fork, in the child of any session: from here on nothing is traced.
  /// [async-signal-safe]
  static void ForgetInChild();

  /// After Stop. In the order of their first events.
  const std::vector<std::unique_ptr<ThreadTrace>>& threads() const { return threads_; }
  const TickRate& rate() const { return rate_; }
  Ticks begin() const { return begin_; }
  Ticks end() const { return end_; }
  size_t refused_threads() const { return refused_.size(); }
  size_t max_depth() const { return wishes_.max_depth; }
  bool has_cpu_time() const { return wishes_.cpu_time; }
  /// Of all threads: ThreadTrace::left_out, and unplaced.
  uint64_t left_out() const;
  uint64_t unplaced() const;
  /// Of what is no call that is counted, how often hooks were told, each time with its end: steps
  /// of generators after the first, and what is passed over.
  uint64_t uncounted() const;
  /// Of any thread: ThreadTrace::lacked_memory; or NoteLackOfMemory was called.
  bool lacked_memory() const;
  /// A call could not be told of. [any thread]
  void NoteLackOfMemory() { lacked_memory_ = true; }

 private:
  friend struct ThreadExit;
  ThreadStart StartOfThisThread();
  /// The calling thread is about to end.
  void EndThread(ThreadTrace& trace);
  /// What it has used, where that is wanted.
  Nanoseconds CpuNow() const { return wishes_.cpu_time ? ThreadCpuNow() : Nanoseconds{}; }

  const uint64_t number_;  ///< no other one has or had it
  TickRate rate_;
  const Ticks begin_;
  Ticks end_ = 0;
  bool stopped_ = false;
  KeyWatch& watch_;
  NodeRoom room_{kMostNodes};
  TraceWishes wishes_{.room = &room_};

  std::mutex mutex_;
  std::vector<KnownThread> known_;  // that have not begun yet
  std::vector<std::unique_ptr<ThreadTrace>> threads_;
  struct Live {
    ThreadTrace* trace;
    ThreadTrace** place;  // its current_trace
    pthread_t thread;
  };
  std::vector<Live> live_;
  std::set<pid_t> refused_;
  std::atomic<bool> lacked_memory_{false};
};

}  // namespace pystrobe::trace
