// SPDX-License-Identifier: Apache-2.0
//
// Native frames of this process, on the thread that makes samples: what handlers could not do.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "sampler/native/binaries.h"
#include "sampler/native/native_code.h"
#include "sampler/native/unwind.h"
#include "sampler/remote/target.h"
#include "sampler/signal/known_rules.h"
#include "sampler/signal/raw_sample.h"

namespace pystrobe::signals {

/// [one thread]
class NativeFrames {
 public:
  /// `target` outlives it.
  static Result<std::unique_ptr<NativeFrames>> Open(const remote::Target& target);

  /// For handlers.
  const KnownRules& rules() const { return known_; }
  native::NativeCode& code() { return code_; }
  /// Of the process' first thread; 0: unknown.
  native::Address first_stack_end() const { return first_stack_end_; }

  /// Goes on from where the handler lacked a rule, appending to `instructions`. Says how it ended.
  native::StepResult Complete(const RecordParts& record,
                              std::vector<native::Address>& instructions);

  /// Gives handlers the rules that are new. `quiet`: none is at work.
  void Publish(Nanoseconds now, bool quiet);
  /// Since the last Renew libraries have come; or some have gone too, in whose place others may be.
  enum class Change : uint8_t { kNone, kCame, kWent };
  Change LibrariesChanged() const;
  /// Takes over what is mapped now. Where libraries have gone, what was known of instructions is no
  /// longer true, for handlers either.
  void Renew();

 private:
  /// What the dynamic loader has done, in all.
  struct Loaded {
    uint64_t added = 0, removed = 0;
    friend bool operator==(const Loaded&, const Loaded&) = default;
  };

  NativeFrames(const remote::Target& target, native::Binaries binaries,
               native::Address first_stack_end);
  static Loaded LoadedNow();
  void Prepare(const remote::Target& target);

  native::Binaries binaries_;
  native::RuleCache cache_{binaries_};
  native::NativeCode code_;
  const native::Address first_stack_end_;
  KnownRules known_;
  Loaded loaded_ = LoadedNow();
  Nanoseconds next_publish_{};
};

}  // namespace pystrobe::signals
