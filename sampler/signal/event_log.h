// SPDX-License-Identifier: Apache-2.0
//
// What the kernel notes when a perf event is due: where its thread was.
#pragma once

#include <linux/perf_event.h>

#include <atomic>
#include <optional>

namespace pystrobe::signals {

/// The ring that the kernel writes for one perf event (include/uapi/linux/perf_event.h, struct
/// perf_event_mmap_page). [Open and the destructor: any thread, no handler at work in the latter]
class EventLog {
 public:
  EventLog() = default;
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// From now on it is of this event, which outlives no part of that. Without effect where the
  /// kernel has no memory for it: an unprivileged user has so much that it may keep, for all its
  /// events. Once.
  void Open(int event_fd);

  /// Whether the thread was in the kernel when its last signal became due; nullopt where nothing is
  /// noted of it. Forgets it. [the thread's handler, async-signal-safe]
  std::optional<bool> TakeInKernel();

 private:
  std::atomic<perf_event_mmap_page*> page_{nullptr};
};

}  // namespace pystrobe::signals
