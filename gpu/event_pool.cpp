// SPDX-License-Identifier: Apache-2.0
#include "gpu/event_pool.h"

#include <unistd.h>

namespace pystrobe::gpu {

EventPool& EventPool::Shared() {
  static EventPool& pool = *new EventPool;
  return pool;
}

Result<Event> EventPool::Take(const DriverApi& cuda, const ScopedContext& scope) {
  {
    const std::lock_guard lock(mutex_);
    if (owner_.exchange(getpid()) != getpid()) free_.clear();
    auto& free = free_[scope.id()];
    if (!free.empty()) {
      const Event event = free.back();
      free.pop_back();
      return event;
    }
  }
  Event event = nullptr;
  const auto done = cuda.Check(cuda.cuEventCreate(&event, CU_EVENT_DEFAULT), "making an event");
  if (!done) return std::unexpected(done.error());
  return event;
}

void EventPool::GiveBack(Event event, uint64_t context_id) {
  if (owner_.load() != getpid()) return;
  const std::lock_guard lock(mutex_);
  free_[context_id].push_back(event);
}

}  // namespace pystrobe::gpu
