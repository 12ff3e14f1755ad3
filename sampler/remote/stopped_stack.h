// SPDX-License-Identifier: Apache-2.0
//
// What native frames are unwound from, of a thread that stands still.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "sampler/native/unwind.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::remote {

using pyabi::Address;

/// The registers, and the stack as far as it is in use, up to kMostBytes: to the end of its
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
  void Clear() { bytes_.clear(); }

  bool empty() const { return bytes_.empty(); }
  const native::Registers& registers() const { return registers_; }
  /// It was in a system call when it was stopped. Not known of one that sleeps.
  bool in_kernel() const { return in_kernel_; }
  /// Good until Take.
  native::StackBytes bytes() const { return {begin_, bytes_}; }
  size_t byte_count() const { return bytes_.size(); }

 private:
  void TakeBytes(const pyabi::Memory& memory, Address thread_pointer);

  native::Registers registers_;
  bool in_kernel_ = false;
  Address begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace pystrobe::remote
