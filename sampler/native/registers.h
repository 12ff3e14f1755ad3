// SPDX-License-Identifier: Apache-2.0
//
// What a thread's registers hold, as far as unwinding needs them.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "sampler/pyabi/memory.h"

namespace pystrobe::native {

using pyabi::Address;

/// Numbers of registers in DWARF (System V ABI for AMD64, figure 3.36). The last one stands for the
/// return address: of the innermost frame it is the instruction pointer.
enum Register : uint8_t {
  kRbx = 3,
  kRbp = 6,
  kRsp = 7,
  kR12 = 12,
  kR13 = 13,
  kR14 = 14,
  kR15 = 15,
  kRip = 16,
  kRegisterCount = 17,
};

/// Those that a function leaves as it found them, so that a caller's frame may be known by them
/// (the same, figure 3.4).
inline constexpr std::array<Register, 6> kCalleeSaved = {kRbx, kRbp, kR12, kR13, kR14, kR15};

/// By Register. Of callers only the callee-saved ones, kRsp and kRip are true.
struct Registers {
  std::array<Address, kRegisterCount> value{};
  uint32_t unknown = 0;  ///< those that nobody told: 1 << Register

  Address pc() const { return value[kRip]; }
  Address sp() const { return value[kRsp]; }
  bool Knows(Register which) const { return (unknown >> which & 1) == 0; }
};

/// Of the stack, behind the stack pointer, what functions may use (the same, 3.2.2). A register
/// that has just been restored is found there still.
inline constexpr Address kRedZone = 128;

/// Those of a thread that a signal interrupted, or that getcontext asked. [async-signal-safe]
inline Registers FromContext(const ucontext_t& context) {
  const auto& from = context.uc_mcontext.gregs;
  Registers registers;
  const auto take = [&](Register to, int index) {
    registers.value[to] = static_cast<Address>(from[index]);
  };
  take(kRbx, REG_RBX);
  take(kRbp, REG_RBP);
  take(kRsp, REG_RSP);
  take(kR12, REG_R12);
  take(kR13, REG_R13);
  take(kR14, REG_R14);
  take(kR15, REG_R15);
  take(kRip, REG_RIP);
  return registers;
}

/// Whether a thread that a signal interrupted was in a system call: the instruction leaves the
/// address of the next one in rcx, which nothing behind it has changed yet; the kernel steps back
/// over it where the call is to begin again. (Intel SDM, volume 2, SYSCALL;
/// arch/x86/kernel/signal.c) [async-signal-safe]
inline bool IsInSystemCall(const ucontext_t& context) {
  constexpr long long kInstruction = 2;
  const auto& from = context.uc_mcontext.gregs;
  const long long next = from[REG_RCX], at = from[REG_RIP];
  return next == at || next == at + kInstruction;
}

}  // namespace pystrobe::native
