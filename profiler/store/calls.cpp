// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/calls.h"

#include <limits>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

constexpr auto kMostTime = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

StackId CallerOf(StackId stack, const Tables& tables) {
  return stack == kEmptyStack ? kEmptyStack : tables.stack(stack).parent;
}

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
    if (call.stack == CallerOf(from, tables)) {
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
      const uint8_t move = moves.Byte();
      uint64_t to = ToIndex(CallerOf(place.stack, tables_));
      if (move == kCallsAgain) {
        to = ToIndex(places_.LastFrom(place.stack));
      } else if (move != kCallReturns) {
        to = Add(ToIndex(place.stack), stacks.Varint());
      }
      if (move > kCallsOther || to >= tables_.stack_count()) return Corrupt("a call of no stack");
      const StackId stack{static_cast<uint32_t>(to)};
      if (move == kCallsOther) places_.Enter(place.stack, stack);
      const uint64_t passed = times.Varint();
      if (passed > kMostTime - place.time_ns) return Corrupt("a call beyond all time");
      place = {place.time_ns + passed, stack};
      calls_.push_back({static_cast<int64_t>(place.time_ns), stack});
    }
    if (!stacks.ok() || !times.ok()) return Corrupt("calls that do not fill their columns");
    visit(index, calls_);
  }
  if (!moves.finished() || !stacks.finished() || !times.finished()) {
    return Corrupt("calls that do not fill their columns");
  }
  return {};
}

}  // namespace pystrobe::store
