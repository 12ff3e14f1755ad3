// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/probe.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "profiler/base/thread.h"
#include "sampler/remote/chance_nap.h"
#include "sampler/remote/futex.h"
#include "sampler/remote/promptness.h"

namespace pystrobe::remote {
namespace {

// By then the slice that kept the other out is over: see WaitsForSlices().
constexpr Nanoseconds kHelpAfter = kShortestSlice + std::chrono::microseconds(20);
constexpr Nanoseconds kNever = TimedSleep::kNever;

/// When the one is to wake lest the other, which is to work at `works_at`, waits for the CPU.
Nanoseconds HelpTime(Nanoseconds works_at, Nanoseconds now) {
  return works_at > now && works_at != kNever ? works_at + kHelpAfter : kNever;
}

/// What is begun now may last until the other would wake and break it, as what came before did.
bool MayTakeLong(Nanoseconds before) { return before > kHelpAfter / 2; }

}  // namespace

Result<std::unique_ptr<Probe>> Probe::Start(int cpu, Pacer& pacer) {
  std::unique_ptr<Probe> probe(new Probe(cpu, pacer));
  auto& [one, other] = probe->workers_;
  if (auto started = probe->StartWorker(one, other); !started) {
    return std::unexpected(started.error());
  }
  if (auto started = probe->StartWorker(other, one); !started) {
    return std::unexpected(started.error());
  }
  return probe;
}

Result<void> Probe::StartWorker(Worker& worker, Worker& other) {
  std::promise<pid_t> promise;
  auto started = promise.get_future();
  auto thread = StartThread("pausing the target",
                            [this, &worker, &other, started = std::move(promise)]() mutable {
                              Main(worker, other, std::move(started));
                            });
  if (!thread) return std::unexpected(thread.error());
  worker.thread = *std::move(thread);
  worker.tid = started.get();
  worker.sleep.Begin(worker.tid);
  // From here: a thread that pins itself is not heard of again where a real-time program has the
  // CPU.
  if (auto done = PinTo(worker.tid, cpu_); !done) {
    return Wrap(done.error(), "pausing the target on CPU {}", cpu_);
  }
  return {};
}

Probe::~Probe() {
  stop_.store(true);
  // Its CPU may be a real-time program's by now.
  Release();
  Remind();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

Nanoseconds Probe::Cpu() {
  Nanoseconds all{};
  for (Worker& worker : workers_) all += ThreadCpuOf(worker.thread.native_handle());
  return all;
}

void Probe::Expect(Nanoseconds at, Nanoseconds then) {
  workers_[0].sleep.Expect(at);
  workers_[1].sleep.Expect(then);
}

// Who wakes at another time soon has something to do then, as a rule.
bool Probe::WakeFor(Nanoseconds at) {
  auto& [one, other] = workers_;
  one.sleep.NoteNeeded();
  other.sleep.NoteNeeded();
  const Nanoseconds one_at = one.sleep.wakes_at(), other_at = other.sleep.wakes_at();
  if (std::min(one_at, other_at) <= at) return false;
  (one_at < other_at ? other : one).sleep.Wake();
  return true;
}

void Probe::Remind() {
  for (Worker& worker : workers_) {
    if (worker.tid != 0) worker.sleep.Wake();
  }
}

bool Probe::Submit(CopyJob& job, Nanoseconds at) {
  if (submitted_ - done_.load() >= kMostJobs) return false;
  Slot& slot = SlotOf(submitted_++);
  slot.job = &job;
  slot.state.store(std::max(at, kAtOnce));
  // The probe may run it already: it leaves this to us.
  job.woken_for = WakeFor(at);
  return true;
}

bool Probe::RunBeside(CopyJob& job, Nanoseconds at) {
  hold_.Ask(at);
  job.woken_for = WakeFor(at);
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
  // They may not be what they were: then any that the kernel allows.
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  for (const Worker& worker : workers_) {
    if (worker.tid == 0 || sched_setaffinity(worker.tid, sizeof cpus, &cpus) == 0) continue;
    sched_setaffinity(worker.tid, sizeof all, &all);
  }
}

void Probe::Main(Worker& self, Worker& other, std::promise<pid_t> started) {
  pthread_setname_np(pthread_self(), "probe");
  // Of ordinary scheduling, whatever its nice level, a thread that woke a moment ago does not
  // always preempt when it wakes again, and then waits for the scheduler's next tick: 4 ms. At 10
  // kHz a tenth of the samples would be lost so (Linux 6.18).
  const ScopedPromptness prompt(Urgency::kAtOnce);
  const bool may_be_late = WaitsForSlices();
  if (may_be_late) self.sleep.UseTimer();
  started.set_value(gettid());
  ChanceNap nap;
  Nanoseconds not_before{}, worked{};
  const auto due = [this, &other] { return DueBut(other.sleep.wakes_at()); };
  while (!stop_.load()) {
    const Nanoseconds first = due();
    const Nanoseconds now = MonotonicNow();
    const Nanoseconds begin = std::max(first, not_before);
    if (begin <= now) {
      if (may_be_late && MayTakeLong(worked) && other.works_at.load() == kNever) {
        other.sleep.PutOff(now + CpuHold::kLongest + kHelpAfter);
      }
      Work(now);
      worked = MonotonicNow() - now;
      continue;
    }
    const Nanoseconds help_at = may_be_late ? HelpTime(other.works_at.load(), now) : kNever;
    const bool works = begin <= help_at;
    self.works_at.store(works ? begin : kNever);
    self.sleep.Set(std::min(begin, help_at));
    if (may_be_late && works && other.works_at.load() == kNever) {
      other.sleep.PutOff(HelpTime(begin, now));
    }
    // It takes its turns from here on: whoever gave us this has woken one of us.
    if (other.sleep.wakes_at() == kNever && DueBut(first) != kNever) other.sleep.Wake();
    const auto has_news = [&] { return stop_.load() || due() < first; };
    if (self.sleep.Sleep(has_news)) not_before = MonotonicNow() + nap.Draw();
  }
}

Nanoseconds Probe::DueBut(Nanoseconds taken) const {
  const auto unless_taken = [taken](Nanoseconds at) { return at == taken ? kNever : at; };
  Nanoseconds due = std::min(DueOfJobBut(taken), unless_taken(hold_.due()));
  for (const Worker& worker : workers_) {
    due = std::min(due, unless_taken(worker.sleep.expected()));
  }
  return due;
}

Nanoseconds Probe::DueOfJobBut(Nanoseconds taken) const {
  const uint32_t first = done_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kMostJobs; ++i) {
    const Nanoseconds at = SlotOf(first + i).state.load();
    if (at == kFree) break;
    if (at != kRunning && at != taken) return at;
  }
  return kNever;
}

void Probe::Work(Nanoseconds now) {
  const std::lock_guard lock(work_);
  if (hold_.due() <= now) {
    hold_.Serve(cpu_);
  } else if (DueOfJobBut({}) <= now) {
    RunNext(now);
  } else {
    for (Worker& worker : workers_) worker.sleep.PassExpected(now);
  }
}

bool Probe::GoBack() {
  return std::ranges::all_of(
      workers_, [this](const Worker& worker) { return PinTo(worker.tid, cpu_).has_value(); });
}

void Probe::RunNext(Nanoseconds now) {
  const uint32_t number = done_.load(std::memory_order_relaxed);
  Slot& slot = SlotOf(number);
  Nanoseconds at = slot.state.load();
  // Taken back meanwhile, or given again for later.
  if (at == kFree || at > now || !slot.state.compare_exchange_strong(at, kRunning)) return;
  try {
    slot.job->Run();
  } catch (const std::bad_alloc&) {
    slot.job->Fail();
  }
  // Somebody else has moved us (taskset, a cpuset that shrank and grew again).
  if (slot.job->own_cpu != cpu_ && !released_.load() && !GoBack()) exiled_.store(true);
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
