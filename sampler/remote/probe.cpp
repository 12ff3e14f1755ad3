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

namespace pystrobe::remote {
namespace {

// The kernel's struct sched_attr (include/uapi/linux/sched/types.h); glibc 2.36 has no wrapper.
struct SchedAttr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};
constexpr uint64_t kShortestSlice = 100'000;  // ns, the least that EEVDF takes (Linux 6.12+)
constexpr uint64_t kDefaultSlice = 0;
constexpr int kPromptNice = -19;

void SetSlice(int nice, uint64_t slice) {
  SchedAttr attributes{sizeof(SchedAttr), SCHED_OTHER, 0, nice, 0, slice, 0, 0};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
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
    : nice_(getpriority(PRIO_PROCESS, 0)), timer_slack_(prctl(PR_GET_TIMERSLACK)) {
  sched_getaffinity(0, sizeof affinity_, &affinity_);
  prctl(PR_SET_TIMERSLACK, 1);
  int nice = setpriority(PRIO_PROCESS, 0, kPromptNice) == 0 ? kPromptNice : nice_;
  SetSlice(nice, kShortestSlice);
}

ScopedPromptness::~ScopedPromptness() {
  SetSlice(nice_, kDefaultSlice);
  prctl(PR_SET_TIMERSLACK, timer_slack_);
  sched_setaffinity(0, sizeof affinity_, &affinity_);
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
  probe->thread_ = std::thread([p = probe.get()] { p->Main(); });
  int error;
  while ((error = probe->pin_error_.load(std::memory_order_acquire)) < 0) {
    FutexWait(probe->done_, 0, nullptr);
  }
  if (error != 0) {
    return FailErrno(error, ErrorCode::kInvalidArgument, "entering CPU {} to pause the target there",
                     cpu);
  }
  probe->submitted_ = 1;  // the start itself was answered as number 1
  return probe;
}

Probe::~Probe() {
  stop_.store(true, std::memory_order_relaxed);
  request_.fetch_add(1, std::memory_order_release);
  FutexWake(request_);
  thread_.join();
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

void Probe::Main() {
  pthread_setname_np(pthread_self(), "probe");
  ScopedPromptness prompt;
  auto pinned = PinTo(cpu_);
  pin_error_.store(pinned ? 0 : errno, std::memory_order_release);
  uint32_t seen = 1;
  request_.store(seen, std::memory_order_release);
  done_.store(seen, std::memory_order_release);
  FutexWake(done_);
  for (;;) {
    uint32_t request;
    while ((request = request_.load(std::memory_order_acquire)) == seen) {
      FutexWait(request_, seen, nullptr);
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = request;
    job_->Run();
    const bool needs_attention = job_->NeedsAttention();
    done_.store(seen);  // the job is the pacer's again
    if (awaited_.load()) FutexWake(done_);
    if (needs_attention) attention_.Raise();
  }
}

}  // namespace pystrobe::remote
