// SPDX-License-Identifier: Apache-2.0
#include "gpu/range_instances.h"

#include "gpu/range_nodes.h"

namespace pystrobe::gpu {
namespace {

// Of a slot that is being written: of number 0, so nobody's, and not free.
constexpr uint64_t kBeingWritten = 1;
// Beside a node, which is far below it.
constexpr uint32_t kContinues = uint32_t{1} << 31;
static_assert(RangeNodes::kMaxNodes < kContinues);
// Slots that are in use and passed by; more only where most of all are open.
constexpr int kTries = 64;

std::atomic_ref<uint64_t> Word(const uint64_t& word) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word));
}

uint64_t Pair(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }
uint32_t High(uint64_t pair) { return static_cast<uint32_t>(pair >> 32); }
uint32_t Low(uint64_t pair) { return static_cast<uint32_t>(pair); }

}  // namespace

Result<RangeInstances> RangeInstances::Make() {
  auto slots = LazyArray<Slot>::Make(kSlots);
  if (!slots) return Wrap(slots.error(), "remembering ranges");
  return RangeInstances(*std::move(slots));
}

void RangeInstances::Clear(size_t slots) {
  slots_.Zero();
  mask_ = static_cast<uint32_t>(slots - 1);
}

uint32_t RangeInstances::Begin(uint32_t node, uint32_t parent, bool continues) {
  const uint32_t mask = mask_.load(std::memory_order_relaxed);
  for (int i = 0; i < kTries; ++i) {
    const uint32_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (LabelOf(number) == 0) continue;
    const Slot& slot = slots_[number & mask];
    uint64_t whose = Word(slot.whose).load(std::memory_order_relaxed);
    if (whose == kBeingWritten) continue;
    const bool is_open = whose != 0 && High(whose) == Low(whose);
    if (is_open || (whose != 0 && number - Low(whose) < (mask + 1) / 2)) continue;
    if (!Word(slot.whose).compare_exchange_strong(whose, kBeingWritten)) continue;
    Word(slot.what).store(Pair(continues ? node | kContinues : node, parent),
                          std::memory_order_release);
    Word(slot.whose).store(Pair(number, number), std::memory_order_release);
    return number;
  }
  return 0;
}

void RangeInstances::End(uint32_t number) {
  const Slot& slot = slots_[number & mask_.load(std::memory_order_relaxed)];
  uint64_t whose = Pair(number, number);
  Word(slot.whose)
      .compare_exchange_strong(whose, Pair(number, next_.load(std::memory_order_relaxed)),
                               std::memory_order_release);
}

std::optional<RangeInstances::Instance> RangeInstances::FindBy(uint32_t number,
                                                               uint32_t bits) const {
  const Slot& slot = slots_[number & mask_.load(std::memory_order_relaxed)];
  const uint64_t whose = Word(slot.whose).load(std::memory_order_acquire);
  if (High(whose) == 0 || (High(whose) & bits) != number) return std::nullopt;
  const uint64_t what = Word(slot.what).load(std::memory_order_acquire);
  // Given to another in between: that is noted before what it is changes.
  if (High(Word(slot.whose).load(std::memory_order_relaxed)) != High(whose)) return std::nullopt;
  return Instance{.number = High(whose),
                  .node = High(what) & ~kContinues,
                  .parent = Low(what),
                  .is_open = High(whose) == Low(whose),
                  .continues = (High(what) & kContinues) != 0};
}

std::optional<RangeInstances::Instance> RangeInstances::FindLabel(uint32_t label) const {
  if (label == 0) return std::nullopt;
  return FindBy(label, LaunchRing::kMaxRange);
}

std::optional<RangeInstances::Instance> RangeInstances::Find(uint32_t number) const {
  if (number == 0) return std::nullopt;
  return FindBy(number, ~uint32_t{0});
}

bool RangeInstances::IsOpen(uint32_t number) const {
  const auto found = Find(number);
  return found && found->is_open;
}

}  // namespace pystrobe::gpu
