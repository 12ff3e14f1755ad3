// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/calls.h"

#include <limits>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

constexpr auto kMostTime = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

}  // namespace

void CallEncoder::Encode(ThreadIndex thread, std::span<const CallEvent> calls, const Tables& tables,
                         CallColumns& columns) {
  if (calls.empty()) return;
  AppendVarint(columns[kCallGroups], ToIndex(thread));
  AppendVarint(columns[kCallGroups], calls.size());
  CallPlaces::Thread& place = places_.Of(thread);
  for (const CallEvent& call : calls) {
    const auto time_ns = static_cast<uint64_t>(call.time_ns);
    AppendVarint(columns[kCallTimes], time_ns - place.time_ns);
    const StackId from = place.stack;
    place = {time_ns, call.stack};
    if (from != kEmptyStack && call.stack == tables.stack(from).parent) {
      AppendByte(columns[kCallMoves], kCallReturns);
    } else if (call.stack == places_.LastFrom(from)) {
      AppendByte(columns[kCallMoves], kCallsAgain);
    } else {
      AppendByte(columns[kCallMoves], kCallsOther);
      AppendVarint(columns[kCallStacks], Difference(ToIndex(call.stack), ToIndex(from)));
      places_.Enter(from, call.stack);
    }
  }
}

Result<void> CallDecoder::Decode(const BlockUnpacker& block, RecordingSource::CallVisitor visit) {
  ByteReader groups(block.column(kCallGroups));
  ByteReader moves(block.column(kCallMoves));
  ByteReader stacks(block.column(kCallStacks));
  ByteReader times(block.column(kCallTimes));
  if (moves.remaining() > kMaxCallEventsPerBlock) return Corrupt("a block of too many calls");
  while (!groups.empty()) {
    const uint64_t thread = groups.Varint();
    const uint64_t count = groups.Varint();
    if (!groups.ok() || thread >= tables_.thread_count() || count > moves.remaining()) {
      return Corrupt("calls of no thread, or more than there are");
    }
    const ThreadIndex index{static_cast<uint32_t>(thread)};
    CallPlaces::Thread& place = places_.Of(index);
    calls_.clear();
    for (uint64_t i = 0; i < count; ++i) {
      const auto stack = Follow(place.stack, moves.Byte(), stacks);
      if (!stack) return Corrupt("a call of no stack");
      const uint64_t passed = times.Varint();
      if (passed > kMostTime - place.time_ns) return Corrupt("a call beyond all time");
      place = {place.time_ns + passed, *stack};
      calls_.push_back({static_cast<int64_t>(place.time_ns), *stack});
    }
    if (!times.ok()) return Corrupt("calls that do not fill their columns");
    visit(index, calls_);
  }
  if (!moves.finished() || !stacks.finished() || !times.finished()) {
    return Corrupt("calls that do not fill their columns");
  }
  return {};
}

// Nothing where that is not one level away.
std::optional<StackId> CallDecoder::Follow(StackId from, uint8_t move, ByteReader& stacks) {
  if (move == kCallReturns) {
    if (from == kEmptyStack) return std::nullopt;
    return tables_.stack(from).parent;
  }
  if (move > kCallsOther) return std::nullopt;
  const uint64_t to =
      move == kCallsAgain ? ToIndex(places_.LastFrom(from)) : Add(ToIndex(from), stacks.Varint());
  if (!stacks.ok() || to == ToIndex(kEmptyStack) || to >= tables_.stack_count()) {
    return std::nullopt;
  }
  const StackId stack{static_cast<uint32_t>(to)};
  if (tables_.stack(stack).parent != from) return std::nullopt;
  places_.Enter(from, stack);
  return stack;
}

}  // namespace pystrobe::store
