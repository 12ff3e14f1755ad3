// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/stopped_stack.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

namespace pystrobe::remote {
namespace {

// Read at once: a stack ends where its mapping does, somewhere in a piece.
constexpr size_t kPiece = 16384, kPage = 4096;

native::Registers FromUser(const user_regs_struct& from) {
  native::Registers registers;
  registers.value[native::kRbx] = from.rbx;
  registers.value[native::kRbp] = from.rbp;
  registers.value[native::kRsp] = from.rsp;
  registers.value[native::kR12] = from.r12;
  registers.value[native::kR13] = from.r13;
  registers.value[native::kR14] = from.r14;
  registers.value[native::kR15] = from.r15;
  registers.value[native::kRip] = from.rip;
  return registers;
}

}  // namespace

bool StoppedStack::Take(pid_t tid, const pyabi::Memory& memory) {
  user_regs_struct user{};
  iovec into{&user, sizeof user};
  bytes_.clear();
  if (ptrace(PTRACE_GETREGSET, tid, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0) return false;
  registers_ = FromUser(user);
  begin_ = registers_.sp() - native::kRedZone;
  size_t step = kPiece - begin_ % kPage;
  while (bytes_.size() < kMostBytes) {
    const size_t have = bytes_.size();
    bytes_.resize(have + step);
    if (memory.Read(begin_ + have, bytes_.data() + have, step)) {
      step = kPiece;
      continue;
    }
    bytes_.resize(have);
    if (step <= kPage) break;
    step = kPage - (begin_ + have) % kPage;
  }
  return true;
}

}  // namespace pystrobe::remote
