// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/unwind.h"

namespace pystrobe::native {

const UnwindRule* RuleCache::Find(Address pc) {
  if (const RuleRange* known = Known(pc)) return &known->rule;
  const auto function = binaries_->FunctionAt(pc);
  if (function && function->start != last_begun_) {
    last_begun_ = function->start;
    ahead_.push_back(*function);
  }
  return &Add(binaries_->RuleAt(pc)).rule;
}

bool RuleCache::LearnAhead() {
  if (ahead_.empty()) return false;
  AddressRange& rest = ahead_.back();
  const RuleRange* known = Known(rest.start);
  const RuleRange range = known != nullptr ? *known : binaries_->RuleFrom(rest.start);
  // What lies between two functions, or behind the last one, is none.
  const bool is_function = range.rule.cfa != UnwindRule::Cfa::kUnknown;
  if (known == nullptr && is_function) Add(range);
  rest.start = range.end;
  if (!is_function || rest.start >= rest.end) ahead_.pop_back();
  return true;
}

void RuleCache::Forget() {
  ranges_.clear();
  ahead_.clear();
  last_begun_ = 0;
}

void RuleCache::ForgetUnknown() {
  std::erase_if(ranges_, [](const auto& entry) {
    return entry.second.rule.cfa == UnwindRule::Cfa::kUnknown;
  });
}

const RuleRange* RuleCache::Known(Address pc) const {
  const auto known = ranges_.upper_bound(pc);
  return known != ranges_.end() && known->second.Contains(pc) ? &known->second : nullptr;
}

const RuleRange& RuleCache::Add(const RuleRange& range) {
  return ranges_.insert_or_assign(range.end, range).first->second;
}

}  // namespace pystrobe::native
