// SPDX-License-Identifier: Apache-2.0
//
// A thread as its signal handler sees it: where it stands, in machine code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "sampler/native/unwind.h"
#include "sampler/signal/known_rules.h"
#include "sampler/signal/own_memory.h"

namespace pystrobe::signals {

/// Unwinds as far as the rules go that are known. Where they end it takes the stack along, for
/// somebody who can ask for more. [one thread: its handler] [async-signal-safe but for Make]
class NativeLook {
 public:
  /// Frames of one look, and bytes of stack that it takes along: where the stack's end is known,
  /// and where it is not.
  static constexpr size_t kMostFrames = 4096, kMostStack = size_t{256} << 10,
                          kMostOfUnknown = size_t{16} << 10;

  /// What it adds to a record at most.
  static constexpr size_t kMostRecord =
      kMostFrames * sizeof(native::Address) + sizeof(native::UnwindCursor) + kMostStack;

  /// `rules` outlives it. `stack_end`: of the thread, 0: it is told by pthread_self(), which lies
  /// there but in the first thread.
  static Result<NativeLook> Make(const KnownRules& rules, native::Address stack_end);

  void Take(OwnMemory& memory, const native::Registers& registers);

  /// Of the last Take: where it ended, and what it found until then, leaf first.
  native::StepResult end() const { return end_; }
  std::span<const native::Address> instructions() const {
    return {instructions_.data(), instructions_.size()};
  }
  /// With kNotAsked: the frame that lacks a rule, and how many bytes of the stack from
  /// cursor().stack() on can be had.
  const native::UnwindCursor& cursor() const { return cursor_; }
  size_t stack_bytes() const { return stack_bytes_; }
  /// Writes those bytes; `memory`: as Take had them.
  void WriteStack(OwnMemory& memory, std::byte* into) const;

  /// How many of instructions(), the outermost ones, are as in the record before.
  uint32_t CountCommon() const;
  /// A record was made of the last Take.
  void Keep() { std::swap(instructions_, previous_); }

 private:
  using Instructions = LazyArray<native::Address>;
  static constexpr size_t kPiece = 1024;

  NativeLook(const KnownRules& rules, native::Address stack_end, Instructions instructions,
             Instructions previous)
      : rules_(&rules),
        stack_end_(stack_end),
        instructions_(std::move(instructions)),
        previous_(std::move(previous)) {}
  size_t MostStack() const;

  const KnownRules* rules_;
  native::Address stack_end_;
  Instructions instructions_;
  Instructions previous_;
  native::UnwindCursor cursor_;
  native::StepResult end_ = native::StepResult::kUnknown;
  size_t stack_bytes_ = 0;
};

}  // namespace pystrobe::signals
