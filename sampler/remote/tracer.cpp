// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/tracer.h"

#include <pthread.h>

#include "profiler/base/thread.h"

namespace pystrobe::remote {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(1);  // while a thread is late to stop

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::Start() {
  std::unique_ptr<Tracer> tracer(new Tracer);
  auto thread = StartThread("stopping the target by ptrace", [t = tracer.get()] { t->Main(); });
  if (!thread) return std::unexpected(thread.error());
  tracer->thread_ = *std::move(thread);
  return tracer;
}

Tracer::~Tracer() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Tracer::Outcome Tracer::Hold(pid_t tid, FunctionRef<void()> copy, FunctionRef<bool()> wanted) {
  // Ctrl-Z would stop the tracer too, and leave the thread it holds standing.
  const AllSignalsBlocked undisturbed;
  Order order{tid, copy, wanted, {}};
  std::unique_lock lock(mutex_);
  order_ = &order;
  changed_.notify_all();
  changed_.wait(lock, [this] { return order_ == nullptr; });
  return order.outcome;
}

void Tracer::Main() {
  pthread_setname_np(pthread_self(), "tracer");
  PtraceStop stop;
  std::unique_lock lock(mutex_);
  const auto wanted = [this] { return end_ || order_ != nullptr; };
  while (!end_) {
    if (stop.waits_for_one()) {
      changed_.wait_for(lock, kLookInterval, wanted);
    } else {
      changed_.wait(lock, wanted);
    }
    if (order_ == nullptr) {
      stop.Resume();
      continue;
    }
    Run(*order_, stop);
    order_ = nullptr;
    changed_.notify_all();
  }
}

void Tracer::Run(Order& order, PtraceStop& stop) {
  order.outcome.stopped = order.wanted() && stop.Stop(order.tid);
  order.copy();
  const bool costs = order.outcome.stopped && !stop.stopped_anyway();
  const Nanoseconds held = MonotonicNow() - stop.stopped_since();
  const Nanoseconds cpu = ThreadCpuNow();
  stop.Resume();
  // By our CPU time: whom we let go may have our CPU next.
  if (costs) order.outcome.held = held + (ThreadCpuNow() - cpu);
}

}  // namespace pystrobe::remote
