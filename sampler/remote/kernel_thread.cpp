// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/kernel_thread.h"

#include <algorithm>

namespace pystrobe::remote {
namespace {

ThreadLedger OpenLedger(TaskClock& clock, const Timeline& timeline, const Tick& now) {
  const auto stat = clock.Read();
  const Nanoseconds unwatched = MonotonicNow() - now.previous;
  return {timeline, now, stat, KernelAccount::OfNewThread(stat.value_or(SchedStat{}), unwatched)};
}

}  // namespace

KernelThread::KernelThread(TaskFiles& files, pid_t pid, pid_t tid, const Timeline& timeline,
                           ThreadIndex index, const Tick& now)
    : tid_(tid),
      index_(index),
      clock_(files, pid, tid),
      ledger_(OpenLedger(clock_, timeline, now)) {}

void KernelThread::Finish(const Tick& tick) {
  ledger_.Finish(tick, !ledger_.gone() && clock_.Read().has_value());
}

bool KernelThread::IsCurrent(const ThreadState& state, const pyabi::Layout& layout,
                             const pyabi::StackCopy& copy) const {
  if (states_.size() == 1) return true;
  if (layout.thread.status != pyabi::kAbsent) {
    const auto status = copy.ValueOr0<uint32_t>(state.id.tstate + layout.thread.status);
    return (status & pyabi::kStatusBoundGilstate) != 0;
  }
  // An interpreter is younger than those from which it is called; but for one called from one that
  // is younger, which these versions do not tell.
  return std::ranges::none_of(states_, [&](const ThreadState* other) {
    if (other == &state || !other->has_frames) return false;
    return !state.has_frames || other->id.interpreter_id > state.id.interpreter_id;
  });
}

}  // namespace pystrobe::remote
