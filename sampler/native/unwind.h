// SPDX-License-Identifier: Apache-2.0
//
// From a thread's registers and the bytes of its stack to the calls it stands in.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "sampler/native/binaries.h"
#include "sampler/native/unwind_rule.h"

namespace pystrobe::native {

/// A frame on the way outwards.
struct UnwindCursor {
  Registers registers;
  bool is_call = false;  ///< it has called: its pc is where it will go on

  /// Where the function stands: of callers the last byte of their call, which is in the function
  /// that called where the address it returns to may be in the next.
  Address instruction() const { return registers.pc() - (is_call ? 1 : 0); }
  /// Where the part of the stack begins that this frame and its callers may need.
  Address stack() const { return registers.sp() - kRedZone; }
};

/// Bytes of a stack, copied: a Copy as StepOver has it.
class StackBytes {
 public:
  StackBytes(Address begin, std::span<const std::byte> bytes) : begin_(begin), bytes_(bytes) {}

  const std::byte* Find(Address address, size_t size) const {
    if (address < begin_ || size > bytes_.size()) return nullptr;
    const Address offset = address - begin_;
    return offset > bytes_.size() - size ? nullptr : bytes_.data() + offset;
  }

 private:
  Address begin_;
  std::span<const std::byte> bytes_;
};

/// A vector as UnwindOver's List, of no more than so many.
struct InstructionList {
  std::vector<Address>& instructions;
  size_t most;

  bool Append(Address address) {
    if (instructions.size() >= most) return false;
    instructions.push_back(address);
    return true;
  }
};

/// Follows the calls outwards from `cursor`, appending where each function stands to
/// `instructions`, leaf first. Says why it ended, with `cursor` at the frame where it did;
/// kOutermost: it is whole. With kNotAsked that frame is not appended yet.
///
/// `Copy` as StepOver has it. `Rules` has `const UnwindRule* Find(Address)`, null for what it was
/// not asked before. `List` has `bool Append(Address)`, false when it is full. [as safe as these]
template <typename Copy, typename Rules, typename List>
StepResult UnwindOver(Copy& copy, Rules& rules, UnwindCursor& cursor, List& instructions) {
  for (;;) {
    const UnwindRule* rule = rules.Find(cursor.instruction());
    if (rule == nullptr) return StepResult::kNotAsked;
    if (!instructions.Append(cursor.instruction())) return StepResult::kFull;
    const StepResult step = StepOver(copy, *rule, cursor.registers);
    if (step != StepResult::kStepped) return step;
    // What a signal interrupted did not call.
    cursor.is_call = rule->cfa != UnwindRule::Cfa::kSignal;
  }
}

/// The rules of those instructions that were asked about, and of others in their functions, where
/// there was time for them. [one thread]
class RuleCache {
 public:
  explicit RuleCache(Binaries& binaries) : binaries_(&binaries) {}

  /// Never null; good until Forget.
  const UnwindRule* Find(Address pc);
  /// One more rule of a function that was asked about: it will be seen at other instructions too.
  /// False where there is none. Some microseconds.
  bool LearnAhead();
  /// After Binaries::Refresh: all, or that of instructions that nothing was known of.
  void Forget();
  void ForgetUnknown();

  /// By `end`.
  const std::map<Address, RuleRange>& ranges() const { return ranges_; }

 private:
  const RuleRange* Known(Address pc) const;
  const RuleRange& Add(const RuleRange& range);

  Binaries* binaries_;
  std::map<Address, RuleRange> ranges_;
  std::vector<AddressRange> ahead_;  // what is not known of functions, from its start on
  Address last_begun_ = 0;           // of those
};

}  // namespace pystrobe::native
