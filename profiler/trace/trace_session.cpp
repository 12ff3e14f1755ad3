// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pystrobe::trace {

constinit thread_local ThreadTrace* current_trace = nullptr;

namespace {

// Whose threads' ends are heard of. A thread may end at any time, the session too.
std::mutex session_mutex;
uint64_t sessions = 0;
TraceSession* running_session = nullptr;

// The number of the session that had no memory for the thread.
constinit thread_local uint64_t refusing_session = 0;
// What the thread calls as it goes away, when its ThreadExit has run, no session would hear the end
// of.
constinit thread_local bool has_ended = false;

uint64_t NewNumber() {
  const std::scoped_lock lock(session_mutex);
  return ++sessions;
}

}  // namespace

// Of each thread that was ever traced: its destructor runs as the thread ends.
struct ThreadExit {
  ~ThreadExit() {
    const std::scoped_lock lock(session_mutex);
    if (running_session != nullptr && current_trace != nullptr) {
      running_session->EndThread(*current_trace);
    }
    // The kernel must not find a note of ours once the thread's memory is another's.
    SwitchFlag::OfThisThread().Clear();
    has_ended = true;
  }
};

TraceSession::TraceSession(std::vector<KnownThread> threads, KeyWatch& watch, const TickRate& rate)
    : number_(NewNumber()),
      rate_(rate),
      begin_(TickClock::Now()),
      watch_(watch),
      known_(std::move(threads)) {
  const std::scoped_lock lock(session_mutex);
  running_session = this;
}

ThreadTrace* TraceSession::BeginThread(std::span<const RunningCall> running) {
  if (has_ended) return nullptr;
  static thread_local ThreadExit exit;
  static_cast<void>(exit);
  const ThreadStart start = StartOfThisThread();
  auto trace = ThreadTrace::Begin(start, running, watch_, rate_, wishes_);
  const std::scoped_lock lock(mutex_);
  if (!trace) {
    refused_.insert(start.tid);
    refusing_session = number_;
    return nullptr;
  }
  // First what may throw.
  if (live_.size() == live_.capacity()) live_.reserve(2 * live_.size() + 8);
  threads_.push_back(*std::move(trace));
  current_trace = threads_.back().get();
  live_.push_back({current_trace, &current_trace, pthread_self()});
  return current_trace;
}

// Once: what has its number later is another thread.
ThreadStart TraceSession::StartOfThisThread() {
  const pid_t self = gettid();
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find(known_, self, &KnownThread::tid);
  if (known == known_.end()) return {self, TickClock::Now(), CpuNow()};
  const Nanoseconds cpu = known->cpu;
  known_.erase(known);
  return {self, begin_, cpu};
}

bool TraceSession::RefusesThisThread() const { return has_ended || refusing_session == number_; }

void TraceSession::EndThread(ThreadTrace& trace) {
  const std::scoped_lock lock(mutex_);
  trace.End(CpuNow());
  std::erase_if(live_, [&trace](const Live& live) { return live.trace == &trace; });
  current_trace = nullptr;
}

void TraceSession::Stop() {
  const std::scoped_lock none_ends(session_mutex);
  const std::scoped_lock lock(mutex_);
  if (std::exchange(stopped_, true)) return;
  running_session = nullptr;
  for (const Live& live : live_) {
    live.trace->End(wishes_.cpu_time ? ThreadCpuOf(live.thread) : Nanoseconds{});
    *live.place = nullptr;
  }
  live_.clear();
  end_ = TickClock::Now();
  rate_.Refine();
}

uint64_t TraceSession::left_out() const {
  uint64_t calls = 0;
  for (const auto& thread : threads_) calls += thread->left_out();
  return calls;
}

uint64_t TraceSession::unplaced() const {
  uint64_t calls = 0;
  for (const auto& thread : threads_) calls += thread->unplaced();
  return calls;
}

uint64_t TraceSession::uncounted() const {
  uint64_t events = 0;
  for (const auto& thread : threads_) events += 2 * thread->resumed() + thread->passed_over();
  return events / 2;
}

bool TraceSession::lacked_memory() const {
  return lacked_memory_ ||
         std::ranges::any_of(threads_, [](const auto& thread) { return thread->lacked_memory(); });
}

void TraceSession::Abandon() {
  stopped_ = true;
  ForgetInChild();
}

// The lock may be held by a thread that the child does not have.
void TraceSession::ForgetInChild() {
  new (&session_mutex) std::mutex;
  running_session = nullptr;
  current_trace = nullptr;
}

}  // namespace pystrobe::trace
