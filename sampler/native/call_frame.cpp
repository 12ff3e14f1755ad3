// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/call_frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>

namespace pystrobe::native {
namespace {

using Cfa = UnwindRule::Cfa;
using Operations = std::span<const Dwarf_Op>;

struct FrameFree {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};

constexpr Dwarf_Word kReturnAddressOffset = static_cast<Dwarf_Word>(-8);

std::optional<Register> BaseRegister(Dwarf_Word number) {
  if (number == kRsp) return kRsp;
  for (Register known : kCalleeSaved) {
    if (number == known) return known;
  }
  return std::nullopt;
}

// DW_OP_bregN comes from expressions, DW_OP_bregx from libdw's own reading of register + offset.
bool SetBase(const Dwarf_Op& operation, UnwindRule& rule) {
  Dwarf_Word number = 0;
  Dwarf_Word offset = 0;
  if (operation.atom == DW_OP_bregx) {
    number = operation.number;
    offset = operation.number2;
  } else if (operation.atom >= DW_OP_breg0 && operation.atom <= DW_OP_breg31) {
    number = operation.atom - DW_OP_breg0;
    offset = operation.number;
  } else {
    return false;
  }
  const auto base = BaseRegister(number);
  const auto bytes = static_cast<int64_t>(offset);
  if (!base || bytes != static_cast<int32_t>(bytes)) return false;
  rule.base = *base;
  rule.offset = static_cast<int32_t>(bytes);
  return true;
}

// The one that linkers write for .plt: rsp + 8 + ((rip & 15) >= 11) << 3, with 10 or 11 there.
bool IsPlt(Operations operations) {
  constexpr size_t kLength = 9;
  return operations.size() == kLength && operations[0].atom == DW_OP_breg7 &&
         operations[0].number == 8 && operations[1].atom == DW_OP_breg16 &&
         operations[2].atom == DW_OP_lit15 && operations[3].atom == DW_OP_and &&
         operations[5].atom == DW_OP_ge && operations[7].atom == DW_OP_shl;
}

void SetCfa(Operations operations, UnwindRule& rule) {
  if (operations.size() == 1 && SetBase(operations[0], rule)) {
    rule.cfa = Cfa::kRegister;
  } else if (operations.size() == 2 && operations[1].atom == DW_OP_deref &&
             SetBase(operations[0], rule)) {
    rule.cfa = Cfa::kPointer;
  } else if (IsPlt(operations)) {
    rule.cfa = Cfa::kPlt;
    rule.offset = operations[4].atom - DW_OP_lit0;
  }
}

/// Where a register's value lies.
struct Location {
  enum { kUnchanged, kUndefined, kAtCfa, kAtRegister, kOther } kind = kOther;
  Dwarf_Word offset = 0;  // kAtCfa, kAtRegister: from it
  Register base = kRsp;   // kAtRegister
};

Location LocationOf(Dwarf_Frame* frame, int number) {
  Dwarf_Op own[3];
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, number, own, &operations, &count) != 0) return {};
  if (count == 0) return {operations == nullptr ? Location::kUnchanged : Location::kUndefined};
  if (operations[0].atom != DW_OP_call_frame_cfa) return {};
  if (count == 1) return {Location::kAtCfa, 0};
  if (count == 2 && operations[1].atom == DW_OP_plus_uconst) {
    return {Location::kAtCfa, operations[1].number};
  }
  // An expression begins with the CFA on its stack, which this one leaves alone.
  if (UnwindRule at; count == 2 && SetBase(operations[1], at)) {
    return {Location::kAtRegister, static_cast<Dwarf_Word>(int64_t{at.offset}), at.base};
  }
  return {};
}

// A function that aligns its stack has what it saved, and where its caller's frame is, at the same
// register.
bool IsFromOrigin(const Location& location, const UnwindRule& rule) {
  if (rule.cfa != Cfa::kPointer) return location.kind == Location::kAtCfa;
  return location.kind == Location::kAtRegister && location.base == rule.base;
}

bool SetSaved(Dwarf_Frame* frame, UnwindRule& rule) {
  for (size_t i = 0; i < kCalleeSaved.size(); ++i) {
    const Location location = LocationOf(frame, kCalleeSaved[i]);
    if (location.kind == Location::kUnchanged || location.kind == Location::kUndefined) continue;
    const auto offset = static_cast<int64_t>(location.offset);
    const bool fits = offset > std::numeric_limits<int16_t>::min() &&
                      offset <= std::numeric_limits<int16_t>::max();
    if (!IsFromOrigin(location, rule) || !fits) return false;
    rule.saved[i] = static_cast<int16_t>(offset);
  }
  return true;
}

UnwindRule RuleOf(Dwarf_Frame* frame, bool is_signal) {
  if (is_signal) return {.cfa = Cfa::kSignal};
  const Location caller = LocationOf(frame, kRip);
  if (caller.kind == Location::kUndefined) return {.cfa = Cfa::kOutermost};
  if (caller.kind != Location::kAtCfa || caller.offset != kReturnAddressOffset) return {};
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  if (dwarf_frame_cfa(frame, &operations, &count) != 0) return {};
  UnwindRule rule;
  SetCfa({operations, count}, rule);
  return SetSaved(frame, rule) ? rule : UnwindRule();
}

// A range may begin too early: behind a "restore state" libdw has its start from before the state
// was saved. Its end is right.
constexpr int kMostRangesBetween = 16;

RuleRange FindInexact(Dwarf_CFI_s* cfi, Address pc) {
  Dwarf_Frame* found = nullptr;
  if (dwarf_cfi_addrframe(cfi, pc, &found) != 0) return {pc, pc + 1, {}};
  const std::unique_ptr<Dwarf_Frame, FrameFree> frame(found);
  Dwarf_Addr start = 0;
  Dwarf_Addr end = 0;
  bool is_signal = false;
  if (dwarf_frame_info(found, &start, &end, &is_signal) < 0) return {pc, pc + 1, {}};
  return {start, end, RuleOf(found, is_signal)};
}

}  // namespace

RuleRange FindRuleFrom(Dwarf_CFI_s* cfi, Address pc) {
  RuleRange found = FindInexact(cfi, pc);
  found.start = pc;
  return found;
}

RuleRange FindRule(Dwarf_CFI_s* cfi, Address pc) {
  RuleRange found = FindInexact(cfi, pc);
  Address start = found.start;
  for (int tries = 0; start < pc; ++tries) {
    const Address end = FindInexact(cfi, start).end;
    if (end == found.end) break;
    start = tries == kMostRangesBetween ? pc : end;
  }
  found.start = start;
  return found;
}

}  // namespace pystrobe::native
