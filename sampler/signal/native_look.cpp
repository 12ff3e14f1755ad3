// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/native_look.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

namespace pystrobe::signals {

Result<NativeLook> NativeLook::Make(const KnownRules& rules, native::Address stack_end) {
  auto instructions = Instructions::Make(kMostFrames);
  if (!instructions) return std::unexpected(instructions.error());
  auto previous = Instructions::Make(kMostFrames);
  if (!previous) return std::unexpected(previous.error());
  return NativeLook(rules, stack_end, *std::move(instructions), *std::move(previous));
}

void NativeLook::Take(OwnMemory& memory, const native::Registers& registers) {
  instructions_.clear();
  cursor_ = {registers};
  stack_bytes_ = 0;
  end_ = native::UnwindOver(memory, *rules_, cursor_, instructions_);
  if (end_ != native::StepResult::kNotAsked) return;
  const native::Address begin = cursor_.stack();
  const size_t most = MostStack();
  while (stack_bytes_ < most && memory.Find(begin + stack_bytes_, kPiece) != nullptr) {
    stack_bytes_ += kPiece;
  }
}

// A program may have stacks of its own, for coroutines.
size_t NativeLook::MostStack() const {
  const native::Address end = stack_end_ != 0 ? stack_end_ : pthread_self();
  const native::Address begin = cursor_.stack();
  constexpr native::Address kLongestStack = native::Address{1} << 30;
  if (end <= begin || end - begin > kLongestStack) return kMostOfUnknown;
  return std::min<size_t>(end - begin, kMostStack);
}

void NativeLook::WriteStack(OwnMemory& memory, std::byte* into) const {
  for (size_t at = 0; at < stack_bytes_; at += kPiece) {
    const std::byte* from = memory.Find(cursor_.stack() + at, kPiece);
    std::memcpy(into + at, from, kPiece);
  }
}

uint32_t NativeLook::CountCommon() const {
  const size_t most = std::min(instructions_.size(), previous_.size());
  uint32_t common = 0;
  while (common < most && instructions_[instructions_.size() - 1 - common] ==
                              previous_[previous_.size() - 1 - common]) {
    ++common;
  }
  return common;
}

}  // namespace pystrobe::signals
