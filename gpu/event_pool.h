// SPDX-License-Identifier: Apache-2.0
//
// Events of the driver, which are dear to make and cheap to use again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gpu/driver_api.h"
#include "gpu/handles.h"
#include "gpu/scoped_context.h"

namespace pystrobe::gpu {

/// Events that can be timed, by context. What is in it is not destroyed: at the end of a process
/// the driver may be gone before us. [any thread]
class EventPool {
 public:
  /// Of this process.
  static EventPool& Shared();

  /// One that nobody else uses, of the context that is current.
  Result<Event> Take(const DriverApi& cuda, const ScopedContext& scope);
  /// For the next one, once it was recorded without a failure; what is recorded may be to come.
  void GiveBack(Event event, uint64_t context_id);

 private:
  std::mutex mutex_;
  // A child of fork() has no use of its parent's, and may find the lock taken for ever.
  std::atomic<pid_t> owner_{0};
  std::unordered_map<uint64_t, std::vector<Event>> free_;
};

}  // namespace pystrobe::gpu
