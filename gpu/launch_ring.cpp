// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_ring.h"

#include <atomic>
#include <bit>

namespace pystrobe::gpu {
namespace {

constexpr int kSlotBits = std::countr_zero(LaunchRing::kSlots);
constexpr int kRangeShift = std::bit_width(LaunchRing::kMaxPath);
constexpr int kSetShift = kRangeShift + std::bit_width(LaunchRing::kMaxRange);
constexpr int kTagShift = kSetShift + 1;
static_assert(kTagShift + 32 - kSlotBits == 64);

// What a slot begins with, above the origin.
uint64_t MarkOf(uint32_t correlation) {
  return uint64_t{correlation >> kSlotBits} << kTagShift | uint64_t{1} << kSetShift;
}

}  // namespace

Result<LaunchRing> LaunchRing::Make() {
  auto slots = LazyArray<uint64_t>::Make(kSlots);
  if (!slots) return Wrap(slots.error(), "remembering launches");
  return LaunchRing(*std::move(slots));
}

void LaunchRing::Put(uint32_t correlation, LaunchOrigin origin) {
  const uint64_t path = origin.path <= kMaxPath ? origin.path : 0;
  const uint64_t range = origin.range <= kMaxRange ? origin.range : 0;
  std::atomic_ref(slots_[correlation % kSlots])
      .store(MarkOf(correlation) | range << kRangeShift | path, std::memory_order_release);
}

std::optional<LaunchOrigin> LaunchRing::Find(uint32_t correlation) const {
  // C++23 has no atomic_ref of a const object yet.
  auto& slot = const_cast<uint64_t&>(slots_[correlation % kSlots]);
  const uint64_t found = std::atomic_ref(slot).load(std::memory_order_acquire);
  if (found >> kSetShift != MarkOf(correlation) >> kSetShift) return std::nullopt;
  return LaunchOrigin{.path = static_cast<uint32_t>(found) & kMaxPath,
                      .range = static_cast<uint32_t>(found >> kRangeShift) & kMaxRange};
}

void LaunchRing::Clear() { slots_.Zero(); }

}  // namespace pystrobe::gpu
