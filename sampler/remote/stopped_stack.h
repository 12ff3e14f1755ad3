// SPDX-License-Identifier: Apache-2.0
//
// What native frames are unwound from, of a thread that ptrace has stopped.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "sampler/native/unwind.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::remote {

using pyabi::Address;

/// The registers, and the stack as far as it is in use, up to kMostBytes. [one thread]
class StoppedStack {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  /// Of thread `tid`, which stands still for the calling thread, its tracer. False where it does
  /// not.
  bool Take(pid_t tid, const pyabi::Memory& memory);

  const native::Registers& registers() const { return registers_; }
  /// Good until Take.
  native::StackBytes bytes() const { return {begin_, bytes_}; }

 private:
  native::Registers registers_;
  Address begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace pystrobe::remote
