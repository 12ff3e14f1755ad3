// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tracer.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "profiler/base/thread.h"
#include "sampler/remote/chance_nap.h"
#include "sampler/remote/futex.h"
#include "sampler/remote/promptness.h"
#include "sampler/remote/wake.h"

namespace pystrobe::remote {
namespace {

constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(1);  // while one is late to stop
// Far above what a stop, and waiting for it, may take. Once in a row that it is exceeded all of
// this process may have been stopped meanwhile.
constexpr Nanoseconds kPatience = std::chrono::milliseconds(250);
constexpr int kMostTimeouts = 2;
constexpr Nanoseconds kAwayFor = std::chrono::minutes(1);

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::Start() {
  std::unique_ptr<Tracer> tracer(new Tracer);
  CPU_ZERO(&tracer->everywhere_);
  sched_getaffinity(0, sizeof(cpu_set_t), &tracer->everywhere_);
  std::promise<pid_t> promise;
  auto started = promise.get_future();
  auto thread =
      StartThread("stopping the target by ptrace",
                  [t = tracer.get(), p = std::move(promise)]() mutable { t->Main(std::move(p)); });
  if (!thread) return std::unexpected(thread.error());
  tracer->thread_ = *std::move(thread);
  tracer->tid_ = started.get();
  // Woken there as an ordinary thread it might wait for the scheduler's next tick.
  tracer->is_real_time_ = IsRealTime(tracer->tid_);
  return tracer;
}

Tracer::~Tracer() {
  if (!thread_.joinable()) return;
  end_.store(true);
  MoveTo(-1);
  WakeThread(tid_);
  thread_.join();
}

Tracer::Outcome Tracer::Hold(pid_t tid, Moment moment, FunctionRef<void()> copy,
                             FunctionRef<bool()> wanted) {
  // Ctrl-Z would stop the tracer too, and leave the thread it holds standing.
  const AllSignalsBlocked undisturbed;
  const bool moved = MoveTo(takes_cpus() ? moment.cpu : -1);
  Order order{tid, moment, copy, wanted, cpu_ >= 0, moved, {}};
  in_vain_ = 0;
  const uint32_t before = done_.load();
  order_.store(&order);
  const bool woken = moved || wakes_at_.load() > moment.at;
  if (woken) WakeThread(tid_);
  for (int timeouts = 0; done_.load() == before;) {
    const Nanoseconds deadline = std::max(moment.at, MonotonicNow()) + kPatience;
    FutexWait(done_, before, deadline);
    if (MonotonicNow() < deadline) continue;
    // What was to wake it is lost where somebody in this process has just ignored that signal.
    WakeThread(tid_);
    if (++timeouts < kMostTimeouts) continue;
    away_until_ = MonotonicNow() + kAwayFor;
    MoveTo(-1);
  }
  // Others may have moved it.
  if (order.outcome.cpu != cpu_) cpu_ = -1;
  order.outcome.woken = woken;
  return order.outcome;
}

void Tracer::Expect(Nanoseconds at) {
  if (takes_cpus() && in_vain_++ < kMostInVain) expected_.store(at);
}

bool Tracer::MoveTo(int cpu) {
  if (cpu == cpu_) return false;
  const int before = std::exchange(cpu_, cpu >= 0 && PinTo(tid_, cpu) ? cpu : -1);
  if (cpu_ < 0 && before >= 0) sched_setaffinity(tid_, sizeof everywhere_, &everywhere_);
  return cpu_ != before;
}

void Tracer::Main(std::promise<pid_t> started) {
  pthread_setname_np(pthread_self(), "tracer");
  PtraceStop stop;
  ChanceNap nap;
  Nanoseconds look_at = kNever, not_before{};
  started.set_value(gettid());
  while (!end_.load()) {
    const Nanoseconds due = Due(look_at), now = MonotonicNow();
    const Nanoseconds begin = std::max(due, not_before);
    if (begin > now) {
      const bool woken = Sleep(begin, due, look_at);
      const Order* order = order_.load();
      if (woken && order != nullptr && order->pinned) not_before = MonotonicNow() + nap.Draw();
      continue;
    }
    if (Order* order = order_.load(); order != nullptr) {
      Run(*order, stop);
      order_.store(nullptr);
      done_.fetch_add(1);  // the order is the other thread's again
      FutexWake(done_);
    } else {
      stop.Resume();
    }
    if (Nanoseconds at = expected_.load(); at <= now) expected_.compare_exchange_strong(at, kNever);
    look_at = stop.waits_for_one() ? MonotonicNow() + kLookInterval : kNever;
  }
}

Nanoseconds Tracer::Due(Nanoseconds look_at) const {
  if (const Order* order = order_.load(); order != nullptr) return order->moment.at;
  return std::min(expected_.load(), look_at);
}

bool Tracer::Sleep(Nanoseconds until, Nanoseconds due, Nanoseconds look_at) {
  wakes_at_.store(until);
  // Who gives it something to do after this finds it asleep.
  const bool woken = !end_.load() && Due(look_at) == due && SleepUntilWoken(until);
  wakes_at_.store(Nanoseconds::zero());
  return woken;
}

void Tracer::Run(Order& order, PtraceStop& stop) {
  // Where it was here before, all that it did since it let the one before go was on this CPU.
  const Nanoseconds since = order.moved ? ThreadCpuNow() : own_cpu_;
  const bool wanted = order.wanted();
  order.outcome.cpu = sched_getcpu();
  order.outcome.stopped = wanted && stop.Stop(order.tid);
  order.copy();
  const bool costs = order.outcome.stopped && !stop.stopped_anyway();
  const bool has_its_cpu = order.pinned && order.outcome.cpu == order.moment.cpu;
  const Nanoseconds before = has_its_cpu ? stop.own_cpu_before() - since : Nanoseconds{};
  const Nanoseconds held = MonotonicNow() - stop.stopped_since();
  const Nanoseconds cpu = ThreadCpuNow();
  stop.Resume();
  own_cpu_ = ThreadCpuNow();
  // By our CPU time: whom we let go may have our CPU next.
  if (costs) order.outcome.held = before + held + (own_cpu_ - cpu);
}

}  // namespace pystrobe::remote
