// SPDX-License-Identifier: Apache-2.0
//
// What native frames are unwound from, of a thread that stands still.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "sampler/native/unwind.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::remote {

using pyabi::Address;

/// Registers, and the bytes of the stack from its red zone on. Empty: nothing was copied.
struct NativeCopy {
  native::Registers registers;
  bool in_kernel = false;  ///< it was in a system call; not known of a thread that slept
  Address begin = 0;
  std::vector<std::byte> bytes;

  bool empty() const { return bytes.empty(); }
};

/// Follows the calls outwards, into `instructions`, which is cleared, as native::UnwindOver. True
/// where it came to the thread's first function.
bool Unwind(const NativeCopy& copy, native::RuleCache& rules, std::vector<Address>& instructions);

/// Copies of one thread, of its stack as far as it is in use, up to kMostBytes: to the end of its
/// mapping, or to what pthread_self() says, which lies there but in the first thread.
/// [one thread at a time]
class StoppedStack {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  /// Of thread `tid`, which stands still for the calling thread, its tracer. False, and there is
  /// nothing, where it does not.
  bool Take(pid_t tid, const pyabi::Memory& memory);
  /// Of a thread that sleeps, by what its /proc/PID/task/TID/syscall says: where it stands and its
  /// stack pointer, no other register. `thread_pointer`: its pthread_self(). False, and there is
  /// nothing, where it does not sleep.
  bool TakeAsleep(std::string_view syscall_text, Address thread_pointer,
                  const pyabi::Memory& memory);

  const NativeCopy& copy() const { return copy_; }
  /// Leaves nothing.
  NativeCopy Release() { return std::exchange(copy_, {}); }

 private:
  void TakeBytes(const pyabi::Memory& memory, Address thread_pointer);
  bool TryBytes(const pyabi::Memory& memory, size_t size);

  NativeCopy copy_;
  Address known_end_ = 0;  // behind the stack nothing could be read, the last time
};

}  // namespace pystrobe::remote
