// SPDX-License-Identifier: Apache-2.0
//
// The unwind rules that signal handlers know.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "sampler/native/unwind_rule.h"

namespace pystrobe::signals {

/// What was published last. Nothing of it ever changes: what is new comes as a whole of its own,
/// and the old one goes when no handler can have it any more. [Publish, FreeOld: one thread; Find:
/// any thread, async-signal-safe]
class KnownRules {
 public:
  using Ranges = std::map<native::Address, native::RuleRange>;

  /// Null where no range has `pc`; good until the handler ends.
  const native::UnwindRule* Find(native::Address pc) const;

  /// `ranges`: in order, none over another.
  void Publish(const Ranges& ranges);
  size_t published() const { return newest_->size(); }
  /// No handler is at work that may have begun before the last Publish.
  void FreeOld() { old_.clear(); }
  bool has_old() const { return !old_.empty(); }

 private:
  using Sorted = std::vector<native::RuleRange>;

  std::unique_ptr<const Sorted> newest_ = std::make_unique<const Sorted>();
  std::atomic<const Sorted*> current_{newest_.get()};
  std::vector<std::unique_ptr<const Sorted>> old_;
};

}  // namespace pystrobe::signals
