// SPDX-License-Identifier: Apache-2.0
//
// How to come from a function's frame to its caller's, for one instruction: what the call frame
// information of an ELF file says, cut down to what compilers make of it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "sampler/native/registers.h"

namespace pystrobe::native {

/// A row of call frame information (DWARF 5, 6.4.1). The canonical frame address (CFA) is what the
/// stack pointer will be after the return; what the caller's registers held lies at offsets from
/// it.
struct UnwindRule {
  enum class Cfa : uint8_t {
    kUnknown,    ///< nothing is known of this instruction, or only what is not understood
    kOutermost,  ///< there is no caller: the return address is undefined
    kRegister,   ///< the register `base` + `offset`
    kPointer,    ///< what lies at the register `base` + `offset` (functions that align their stack)
    kPlt,     ///< rsp + 8, and 8 more from byte `offset` of each 16 on (procedure linkage tables)
    kSignal,  ///< all registers lie in the ucontext_t at rsp
  };
  static constexpr int16_t kUnchanged = std::numeric_limits<int16_t>::min();

  Cfa cfa = Cfa::kUnknown;
  Register base = kRsp;
  int32_t offset = 0;
  /// By kCalleeSaved: where from the CFA, with kPointer from `base`, its value lies, in bytes;
  /// kUnchanged: it still has it.
  std::array<int16_t, kCalleeSaved.size()> saved = {kUnchanged, kUnchanged, kUnchanged,
                                                    kUnchanged, kUnchanged, kUnchanged};

  friend bool operator==(const UnwindRule&, const UnwindRule&) = default;
};

/// Instructions [start, end) that have the same rule.
struct RuleRange {
  Address start = 0, end = 0;
  UnwindRule rule;

  bool Contains(Address pc) const { return start <= pc && pc < end; }
};

enum class StepResult : uint8_t {
  kStepped,     ///< or nobody tried
  kOutermost,   ///< there is no caller
  kUnknown,     ///< there is no rule
  kNotAsked,    ///< no rule is known here; elsewhere one may be
  kFull,        ///< the list has no room for more
  kUnreadable,  ///< what the rule asks for could not be read, or is a register that nobody told
  kStuck,       ///< the caller's frame would not lie further out
};

namespace unwind {

// Offsets into ucontext_t (sys/ucontext.h of the C library): gregs by number, 8 bytes each.
inline constexpr Address kGregs = 40;
struct Greg {
  Register register_number;
  uint8_t index;
};
inline constexpr std::array<Greg, 8> kSavedGregs = {
    {{kR12, 4}, {kR13, 5}, {kR14, 6}, {kR15, 7}, {kRbp, 10}, {kRbx, 11}, {kRsp, 15}, {kRip, 16}}};

template <typename Copy>
bool Load(Copy& copy, Address address, Address& value) {
  const std::byte* bytes = copy.Find(address, sizeof value);
  if (bytes == nullptr) return false;
  std::memcpy(&value, bytes, sizeof value);
  return true;
}

template <typename Copy>
StepResult LeaveSignal(Copy& copy, Registers& registers) {
  Registers caller;
  for (const Greg& greg : kSavedGregs) {
    const Address at = registers.sp() + kGregs + Address{greg.index} * sizeof(Address);
    if (!Load(copy, at, caller.value[greg.register_number])) return StepResult::kUnreadable;
  }
  registers = caller;
  return StepResult::kStepped;
}

template <typename Copy>
bool FindCfa(Copy& copy, const UnwindRule& rule, const Registers& registers, Address& cfa) {
  if (!registers.Knows(rule.base)) return false;
  cfa = registers.value[rule.base] + static_cast<Address>(int64_t{rule.offset});
  if (rule.cfa == UnwindRule::Cfa::kPlt) {
    constexpr Address kEntryBytes = 16;
    const bool has_pushed = registers.pc() % kEntryBytes >= static_cast<Address>(rule.offset);
    cfa = registers.sp() + sizeof(Address) + (has_pushed ? sizeof(Address) : 0);
  }
  return rule.cfa != UnwindRule::Cfa::kPointer || Load(copy, cfa, cfa);
}

}  // namespace unwind

/// Makes `registers` those of the caller, by the `rule` of their instruction; leaves them as they
/// are where it cannot. `Copy` has `const std::byte* Find(Address, size_t)`, null for what it does
/// not have. [as safe as the copy]
template <typename Copy>
StepResult StepOver(Copy& copy, const UnwindRule& rule, Registers& registers) {
  if (rule.cfa == UnwindRule::Cfa::kUnknown) return StepResult::kUnknown;
  if (rule.cfa == UnwindRule::Cfa::kOutermost) return StepResult::kOutermost;
  if (rule.cfa == UnwindRule::Cfa::kSignal) return unwind::LeaveSignal(copy, registers);
  Registers caller = registers;
  Address cfa = 0;
  if (!unwind::FindCfa(copy, rule, registers, cfa)) return StepResult::kUnreadable;
  if (cfa <= registers.sp()) return StepResult::kStuck;
  if (!unwind::Load(copy, cfa - sizeof(Address), caller.value[kRip])) {
    return StepResult::kUnreadable;
  }
  caller.value[kRsp] = cfa;
  const bool is_pointer = rule.cfa == UnwindRule::Cfa::kPointer;
  const Address origin = is_pointer ? registers.value[rule.base] : cfa;
  for (size_t i = 0; i < kCalleeSaved.size(); ++i) {
    if (rule.saved[i] == UnwindRule::kUnchanged) continue;
    const Address at = origin + static_cast<Address>(int64_t{rule.saved[i]});
    if (!unwind::Load(copy, at, caller.value[kCalleeSaved[i]])) return StepResult::kUnreadable;
    caller.unknown &= ~(uint32_t{1} << kCalleeSaved[i]);
  }
  registers = caller;
  return caller.pc() == 0 ? StepResult::kOutermost : StepResult::kStepped;
}

}  // namespace pystrobe::native
