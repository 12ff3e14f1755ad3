// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/probe.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "profiler/base/thread.h"
#include "sampler/remote/chance_nap.h"
#include "sampler/remote/futex.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

// After the time of a timer that should have fired, which may be lost (WakeTimer).
constexpr Nanoseconds kTimerPatience = std::chrono::milliseconds(1);

}  // namespace

Result<std::unique_ptr<Probe>> Probe::Start(int cpu, Pacer& pacer) {
  std::unique_ptr<Probe> probe(new Probe(cpu, pacer));
  std::promise<pid_t> promise;
  auto started = promise.get_future();
  auto thread = StartThread(
      "pausing the target",
      [p = probe.get(), started = std::move(promise)]() mutable { p->Main(std::move(started)); });
  if (!thread) return std::unexpected(thread.error());
  probe->thread_ = *std::move(thread);
  probe->tid_ = started.get();
  probe->sleep_.Begin(probe->tid_);
  // From here: a thread that pins itself is not heard of again where a real-time program has the
  // CPU.
  if (auto done = PinTo(probe->tid_, cpu); !done) {
    return Wrap(done.error(), "pausing the target on CPU {}", cpu);
  }
  return probe;
}

Probe::~Probe() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  // Its CPU may be a real-time program's by now.
  Release();
  sleep_.Wake();
  thread_.join();
}

bool Probe::Submit(CopyJob& job, Nanoseconds at) {
  if (submitted_ - done_.load() >= kMostJobs) return false;
  Slot& slot = SlotOf(submitted_++);
  slot.job = &job;
  slot.state.store(at);
  // The probe may run it already: it leaves this to us.
  job.woken_for = sleep_.WakeFor(at);
  return true;
}

bool Probe::RunBeside(CopyJob& job, Nanoseconds at) {
  hold_.Ask(at);
  job.woken_for = sleep_.WakeFor(at);
  if (hold_.SleepUntilSoon()) job.LookAgain(at);
  if (!hold_.Await()) return false;
  job.RunBeside(cpu_);
  if (!hold_.End()) return false;
  job.EndBeside(hold_.TakeStay());
  return true;
}

uint32_t Probe::Withdraw(Nanoseconds now, uint32_t most) {
  uint32_t withdrawn = 0;
  for (; busy() && withdrawn < most; ++withdrawn, --submitted_) {
    Slot& slot = SlotOf(submitted_ - 1);
    Nanoseconds at = slot.state.load();
    if (at <= now || !slot.state.compare_exchange_strong(at, kFree)) break;
    // For the first of them it may sleep, and count on that timer when another is submitted.
    if (at != sleep_.wakes_at()) slot.timer.Cancel();
  }
  return withdrawn;
}

bool Probe::Wait(Nanoseconds timeout) {
  const Nanoseconds deadline = MonotonicNow() + timeout;
  awaited_.store(true);
  for (uint32_t done; (done = done_.load()) != submitted_ && MonotonicNow() < deadline;) {
    FutexWait(done_, done, deadline);
  }
  awaited_.store(false, std::memory_order_relaxed);
  return !busy();
}

void Probe::Release() {
  released_.store(true);
  const cpu_set_t& cpus = pacer_.allowed();
  if (sched_setaffinity(tid_, sizeof cpus, &cpus) == 0) return;
  // They are not what they were: then any that the kernel allows.
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  sched_setaffinity(tid_, sizeof all, &all);
}

void Probe::Main(std::promise<pid_t> started) {
  pthread_setname_np(pthread_self(), "probe");
  // Of ordinary scheduling, whatever its nice level, a thread that woke a moment ago does not
  // always preempt when it wakes again, and then waits for the scheduler's next tick: 4 ms. At 10
  // kHz a tenth of the samples would be lost so (Linux 6.18).
  const ScopedPromptness prompt(Urgency::kAtOnce);
  started.set_value(gettid());
  ChanceNap nap;
  Nanoseconds not_before{};
  while (!stop_.load()) {
    const Nanoseconds due = Due();
    const Nanoseconds now = MonotonicNow();
    const Nanoseconds begin = std::max(due, not_before);
    if (begin <= now) {
      Work(now);
    } else if (Sleep(begin, due)) {
      not_before = MonotonicNow() + nap.Draw();
    }
  }
}

bool Probe::Sleep(Nanoseconds until, Nanoseconds due) {
  SetTimers(until);
  const bool has_timer = SlotOf(done_.load(std::memory_order_relaxed)).timer.at() == until;
  const auto has_news = [this, due] { return Due() != due; };
  return sleep_.Sleep(until, has_timer ? kTimerPatience : Nanoseconds::zero(), has_news);
}

void Probe::SetTimers(Nanoseconds from) {
  const uint32_t first = done_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kMostJobs; ++i) {
    Slot& slot = SlotOf(first + i);
    const Nanoseconds at = slot.state.load();
    if (at == kFree) return;
    if (at >= from && slot.timer.at() != at) slot.timer.Set(at);
  }
}

Nanoseconds Probe::Due() { return std::min({DueOfJob(), hold_.due(), sleep_.expected()}); }

Nanoseconds Probe::DueOfJob() {
  const Nanoseconds at = SlotOf(done_.load(std::memory_order_relaxed)).state.load();
  return at == kFree ? TimedSleep::kNever : at;
}

void Probe::Work(Nanoseconds now) {
  if (hold_.due() <= now) {
    hold_.Serve(cpu_);
  } else if (DueOfJob() <= now) {
    RunNext();
  } else {
    sleep_.PassExpected(now);
  }
}

void Probe::RunNext() {
  const uint32_t number = done_.load(std::memory_order_relaxed);
  Slot& slot = SlotOf(number);
  Nanoseconds at = slot.state.load();
  // Taken back meanwhile.
  if (at == kFree || !slot.state.compare_exchange_strong(at, kRunning)) return;
  slot.job->Run();
  // Somebody else has moved us (taskset, a cpuset that shrank and grew again).
  if (slot.job->own_cpu != cpu_ && !released_.load() && !PinTo(0, cpu_)) exiled_.store(true);
  const bool needs_attention = slot.job->NeedsAttention();
  const int target_cpu = slot.job->subject_cpu;
  // Before anything that may wake the pacer: it may sleep where the target is now.
  if (needs_attention && target_cpu != cpu_) pacer_.KeepOff(target_cpu);
  slot.state.store(kFree);
  done_.store(number + 1);  // the job is the pacer's again
  if (awaited_.load()) FutexWake(done_);
  if (needs_attention) pacer_.Wake();
}

}  // namespace pystrobe::remote
