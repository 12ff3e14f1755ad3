// SPDX-License-Identifier: Apache-2.0
//
// From thread states to the kernel's thread ids, as the sampler's pid namespace counts them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "sampler/remote/target.h"

namespace pystrobe::remote {

/// 3.11+ thread states hold the id that the thread itself sees; before, it is found in the C
/// library's own thread structure, which pthread_self() points to. Either is a number of the
/// target's pid namespace and is translated by /proc/PID/task/TID/status (NSpid). [any thread]
class ThreadIds {
 public:
  explicit ThreadIds(pid_t pid) : pid_(pid) {}

  /// Sets PyThread::tid. Takes threads out that the kernel does not know (gone, or not yet begun).
  /// Leaves 0 where no id can be found at all. Fails with kExited when the process is gone.
  Result<void> Resolve(const pyabi::Memory& memory, const pyabi::Layout& layout,
                       std::vector<PyThread>& threads);

 private:
  using TidMap = HashMap<pid_t, pid_t>;

  Result<void> UpdateTasks();
  bool FillFromPthread(const pyabi::Memory& memory, std::vector<PyThread>& threads);
  std::optional<uint32_t> FindTidOffset(const pyabi::Memory& memory,
                                        const std::vector<PyThread>& threads) const;

  const pid_t pid_;
  std::mutex mutex_;
  TidMap outer_by_inner_;               ///< tasks alive at the last look
  std::optional<uint32_t> tid_offset_;  ///< of the tid in the C library's thread structure
};

}  // namespace pystrobe::remote
