// SPDX-License-Identifier: Apache-2.0
//
// From libdw's call frame information to an UnwindRule.
#pragma once

#include "sampler/native/unwind_rule.h"

struct Dwarf_CFI_s;

namespace pystrobe::native {

/// The rule of the instruction at `pc`, and for which others it is the same. Addresses are the
/// file's own. A range of one byte and UnwindRule::Cfa::kUnknown where `cfi` does not cover it, or
/// says what no rule can: locations that are expressions, other than those of UnwindRule.
/// [one thread at a time for one `cfi`]
RuleRange FindRule(Dwarf_CFI_s* cfi, Address pc);

/// The same from `pc` on: several times as fast.
RuleRange FindRuleFrom(Dwarf_CFI_s* cfi, Address pc);

}  // namespace pystrobe::native
