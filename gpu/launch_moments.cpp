// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_moments.h"

#include <atomic>

#include "gpu/launch_ring.h"

namespace pystrobe::gpu {
namespace {

// C++23 has no atomic_ref of a const object yet.
std::atomic_ref<uint64_t> Word(const uint64_t& word) {
  return std::atomic_ref(const_cast<uint64_t&>(word));
}

}  // namespace

Result<LaunchMoments> LaunchMoments::Make() {
  auto slots = LazyArray<Slot>::Make(LaunchRing::kSlots);
  if (!slots) return Wrap(slots.error(), "remembering when launches were");
  return LaunchMoments(*std::move(slots));
}

void LaunchMoments::Put(uint32_t correlation, LaunchMoment moment) {
  const Slot& slot = slots_[correlation % LaunchRing::kSlots];
  // Nobody's while it changes, so that Find mixes no two of them up.
  Word(slot.whose).store(0, std::memory_order_relaxed);
  Word(slot.time_ns).store(static_cast<uint64_t>(moment.time_ns), std::memory_order_release);
  Word(slot.whose).store(uint64_t{correlation} << 32 | moment.tid, std::memory_order_release);
}

std::optional<LaunchMoment> LaunchMoments::Find(uint32_t correlation) const {
  const Slot& slot = slots_[correlation % LaunchRing::kSlots];
  const uint64_t whose = Word(slot.whose).load(std::memory_order_acquire);
  if (whose == 0 || whose >> 32 != correlation) return std::nullopt;
  const uint64_t time = Word(slot.time_ns).load(std::memory_order_acquire);
  if (Word(slot.whose).load(std::memory_order_relaxed) != whose) return std::nullopt;
  return LaunchMoment{.time_ns = static_cast<int64_t>(time), .tid = static_cast<uint32_t>(whose)};
}

void LaunchMoments::Clear() { slots_.Zero(); }

}  // namespace pystrobe::gpu
