// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/probe.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "profiler/base/thread.h"

namespace pystrobe::remote {
namespace {

constexpr uint64_t kShortestSlice = 100'000;  // ns, the least that EEVDF takes (Linux 6.12+)
constexpr int kPromptNice = -19;

bool SetScheduling(SchedAttr attributes) {
  attributes.size = sizeof attributes;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

bool IsRealTime(uint32_t policy) {
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

// `until` is CLOCK_MONOTONIC; null: for ever.
void FutexWait(std::atomic<uint32_t>& word, uint32_t value, const timespec* until) {
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

timespec ToTimespec(Nanoseconds t) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(t);
  return {seconds.count(), (t - seconds).count()};
}

}  // namespace

ScopedPromptness::ScopedPromptness()
    : timer_slack_(prctl(PR_GET_TIMERSLACK)),
      affinity_known_(sched_getaffinity(0, sizeof affinity_, &affinity_) == 0) {
  prctl(PR_SET_TIMERSLACK, 1);
  if (syscall(SYS_sched_getattr, 0, &before_, sizeof before_, 0) != 0) return;
  if (IsRealTime(before_.policy)) return;
  SchedAttr prompt{};
  prompt.policy = SCHED_OTHER;
  prompt.runtime = kShortestSlice;
  prompt.nice = kPromptNice;
  changed_ = SetScheduling(prompt);
  if (changed_) return;
  prompt.nice = before_.nice;
  changed_ = SetScheduling(prompt);
}

ScopedPromptness::~ScopedPromptness() {
  if (changed_) SetScheduling(before_);
  prctl(PR_SET_TIMERSLACK, timer_slack_);
  if (affinity_known_) sched_setaffinity(0, sizeof affinity_, &affinity_);
}

Result<void> PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return FailErrno(errno, ErrorCode::kInvalidArgument, "entering CPU {}", cpu);
}

void Attention::Raise() {
  raised_.store(1, std::memory_order_release);
  FutexWake(raised_);
}

void Attention::Wait(Nanoseconds until) {
  timespec t = ToTimespec(until);
  FutexWait(raised_, 0, &t);
  raised_.store(0, std::memory_order_relaxed);
}

Result<std::unique_ptr<Probe>> Probe::Start(int cpu, Attention& attention) {
  std::unique_ptr<Probe> probe(new Probe(cpu, attention));
  std::promise<Result<void>> promise;
  auto pinned = promise.get_future();
  auto thread = StartThread(
      "pausing the target",
      [p = probe.get(), ready = std::move(promise)]() mutable { p->Main(std::move(ready)); });
  if (!thread) return std::unexpected(thread.error());
  probe->thread_ = *std::move(thread);
  if (auto done = pinned.get(); !done) {
    return Wrap(done.error(), "pausing the target on CPU {}", cpu);
  }
  return probe;
}

Probe::~Probe() {
  stop_.store(true, std::memory_order_relaxed);
  request_.fetch_add(1, std::memory_order_release);
  FutexWake(request_);
  if (thread_.joinable()) thread_.join();
}

void Probe::Submit(CopyJob& job) {
  job_ = &job;
  ++submitted_;
  request_.store(submitted_, std::memory_order_release);
  FutexWake(request_);
}

bool Probe::Wait(Nanoseconds timeout) {
  const Nanoseconds deadline = MonotonicNow() + timeout;
  const timespec until = ToTimespec(deadline);
  awaited_.store(true);
  bool done;
  while (!(done = !busy()) && MonotonicNow() < deadline) {
    FutexWait(done_, submitted_ - 1, &until);
  }
  awaited_.store(false, std::memory_order_relaxed);
  return done;
}

void Probe::Release(const cpu_set_t& cpus) { sched_setaffinity(tid_, sizeof cpus, &cpus); }

void Probe::Main(std::promise<Result<void>> pinned) {
  pthread_setname_np(pthread_self(), "probe");
  ScopedPromptness prompt;
  tid_ = gettid();
  pinned.set_value(PinTo(cpu_));
  for (uint32_t seen = 0;;) {
    uint32_t request;
    while ((request = request_.load(std::memory_order_acquire)) == seen) {
      FutexWait(request_, seen, nullptr);
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = request;
    CopyJob& job = *job_;
    job.Run();
    const bool needs_attention = job.NeedsAttention();
    done_.store(seen);  // the job is the pacer's again
    if (awaited_.load()) FutexWake(done_);
    if (needs_attention) attention_.Raise();
  }
}

}  // namespace pystrobe::remote
