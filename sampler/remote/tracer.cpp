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
  tracer->sleep_.Begin(tracer->tid_);
  // Woken there as an ordinary thread it might wait for the scheduler's next tick.
  tracer->is_real_time_ = IsRealTime(tracer->tid_);
  return tracer;
}

Tracer::~Tracer() {
  if (!thread_.joinable()) return;
  end_.store(true);
  MoveTo(-1);
  sleep_.Wake();
  thread_.join();
}

Tracer::Outcome Tracer::Hold(Moment moment, FunctionRef<pid_t()> whom, FunctionRef<void()> copy) {
  // Ctrl-Z would stop the tracer too, and leave the thread it holds standing.
  const SignalsBlocked undisturbed;
  const bool moved = MoveTo(takes_cpus() ? moment.cpu : -1);
  Order order{moment, whom, copy, cpu_ >= 0, moved, {}};
  const uint32_t before = done_.load();
  order_.store(&order);
  const bool woken = sleep_.WakeFor(moment.at);
  if (moved && !woken) sleep_.Wake();
  for (int timeouts = 0; done_.load() == before;) {
    const Nanoseconds deadline = std::max(moment.at, MonotonicNow()) + kPatience;
    FutexWait(done_, before, deadline);
    if (MonotonicNow() < deadline) continue;
    // What was to wake it is lost where somebody in this process has just ignored that signal.
    sleep_.Wake();
    if (++timeouts < kMostTimeouts) continue;
    away_until_ = MonotonicNow() + kAwayFor;
    MoveTo(-1);
  }
  // Others may have moved it.
  if (order.outcome.cpu != cpu_) cpu_ = -1;
  order.outcome.woken = woken || moved;
  return order.outcome;
}

void Tracer::Expect(Nanoseconds at) {
  if (takes_cpus()) sleep_.Expect(at);
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
  Nanoseconds look_at = TimedSleep::kNever, not_before{};
  started.set_value(gettid());
  while (!end_.load()) {
    const Nanoseconds due = Due(look_at), now = MonotonicNow();
    const Nanoseconds begin = std::max(due, not_before);
    if (begin > now) {
      const auto has_news = [this, due, look_at] { return end_.load() || Due(look_at) != due; };
      sleep_.Set(begin);
      const bool woken = sleep_.Sleep(has_news);
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
    sleep_.PassExpected(now);
    look_at = stop.waits_for_one() ? MonotonicNow() + kLookInterval : TimedSleep::kNever;
  }
}

Nanoseconds Tracer::Due(Nanoseconds look_at) const {
  if (const Order* order = order_.load(); order != nullptr) return order->moment.at;
  return std::min(sleep_.expected(), look_at);
}

void Tracer::Run(Order& order, PtraceStop& stop) {
  // Where it was here before, all that it did since it let the one before go was on this CPU.
  const Nanoseconds since = order.moved ? ThreadCpuNow() : own_cpu_;
  const pid_t tid = order.whom();
  order.outcome.cpu = sched_getcpu();
  order.outcome.stopped = tid != 0 && stop.Stop(tid);
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
