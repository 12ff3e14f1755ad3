// SPDX-License-Identifier: Apache-2.0
//
// What a signal handler hands over: the record of one look at its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "sampler/native/unwind.h"
#include "sampler/pyabi/code.h"
#include "sampler/pyabi/walk.h"

namespace pystrobe::signals {

/// A code object that the reader did not know yet, as it was while a frame kept it alive.
struct FoundCode {
  pyabi::Address code;
  pyabi::CodeIdentity identity;
};

/// The head of a record. Behind it, as bytes: `frame_count` pyabi::RawFrames, leaf first, then
/// `code_count` FoundCodes, then `captured_bytes` of Captures. The frames below those are the last
/// `common` ones of the record before. Then, likewise, `native_count` addresses of instructions
/// with `native_common` of the record before below them; and, with kNotAsked, a
/// native::UnwindCursor and `stack_bytes` of the stack from its stack() on.
struct RawSample {
  int64_t time_ns;      ///< CLOCK_MONOTONIC when the signal came
  uint64_t cpu_ns;      ///< CPU time of the thread until then
  uint64_t period_ns;   ///< of CPU time, that was to pass since the signal before
  uint64_t generation;  ///< the interpreter's count of dead code objects (3.14+), else 0
  uint32_t handler_ns;  ///< CPU time of the handler, for all tries
  uint32_t lost;        ///< looks since the record before that found no room
  uint32_t frame_count;
  uint32_t common;
  uint32_t code_count;
  uint32_t captured_bytes;   ///< a multiple of 8
  uint32_t tries;            ///< looks before this, for the same sample, that found no whole stack
  pyabi::WalkStatus status;  ///< kMissing: deeper than a record can be, or memory that is not there
  uint32_t native_count;
  uint32_t native_common;
  uint32_t stack_bytes;           ///< a multiple of 8
  native::StepResult native_end;  ///< of native frames, where they were asked for
  bool in_kernel;                 ///< the same
};
static_assert(sizeof(RawSample) % alignof(pyabi::RawFrame) == 0);
static_assert(sizeof(pyabi::RawFrame) % alignof(FoundCode) == 0);
static_assert(sizeof(FoundCode) % alignof(native::UnwindCursor) == 0);

inline bool HasStack(const RawSample& head) {
  return head.native_end == native::StepResult::kNotAsked;
}

inline size_t RecordSize(const RawSample& head) {
  return sizeof head + head.frame_count * sizeof(pyabi::RawFrame) +
         head.code_count * sizeof(FoundCode) + head.captured_bytes +
         head.native_count * sizeof(native::Address) +
         (HasStack(head) ? sizeof(native::UnwindCursor) + head.stack_bytes : 0);
}

/// A record taken apart; it points into the record.
struct RecordParts {
  RawSample head;
  std::span<const pyabi::RawFrame> frames;
  std::span<const FoundCode> codes;
  std::span<const std::byte> captured;
  std::span<const native::Address> instructions;
  native::UnwindCursor cursor;       ///< where HasStack
  std::span<const std::byte> stack;  ///< the same
};

inline RecordParts TakeApart(std::span<const std::byte> record) {
  RecordParts parts;
  std::memcpy(&parts.head, record.data(), sizeof parts.head);
  const std::byte* at = record.data() + sizeof parts.head;
  parts.frames = {reinterpret_cast<const pyabi::RawFrame*>(at), parts.head.frame_count};
  at += parts.frames.size_bytes();
  parts.codes = {reinterpret_cast<const FoundCode*>(at), parts.head.code_count};
  at += parts.codes.size_bytes();
  parts.captured = {at, parts.head.captured_bytes};
  at += parts.captured.size_bytes();
  parts.instructions = {reinterpret_cast<const native::Address*>(at), parts.head.native_count};
  at += parts.instructions.size_bytes();
  if (HasStack(parts.head)) {
    std::memcpy(&parts.cursor, at, sizeof parts.cursor);
    parts.stack = {at + sizeof parts.cursor, parts.head.stack_bytes};
  }
  return parts;
}

}  // namespace pystrobe::signals
