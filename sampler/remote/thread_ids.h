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

/// The ids that the kernel gave out between two moments: it counts up, and after the highest starts
/// again at the bottom. `before` and `last`: the one given out last at either moment.
struct IdsGivenOut {
  pid_t before = 0, last = 0;

  bool Contain(pid_t id) const {
    return before <= last ? before < id && id <= last : before < id || id <= last;
  }
};

/// 3.11+ thread states hold the id that the thread itself sees; before, it is found in the C
/// library's own thread structure, which pthread_self() points to. Either is a number of the
/// target's pid namespace and is translated by /proc/PID/task/TID/status (NSpid), which is read
/// again when the kernel may have given the TID to another thread since. [any thread]
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
  TidMap Translate(const std::vector<pid_t>& tasks, IdsGivenOut since_last_look) const;
  bool FillFromPthread(const pyabi::Memory& memory, std::vector<PyThread>& threads);
  std::optional<uint32_t> FindTidOffset(const pyabi::Memory& memory,
                                        const std::vector<PyThread>& threads) const;

  const pid_t pid_;
  std::mutex mutex_;
  TidMap outer_by_inner_;               ///< tasks alive at the last look
  pid_t given_before_ = 0;              ///< the id given out last, at the beginning of that look
  std::optional<uint32_t> tid_offset_;  ///< of the tid in the C library's thread structure
};

}  // namespace pystrobe::remote
