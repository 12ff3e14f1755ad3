// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch_tally.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

constexpr int kDeviceShift = 32;
constexpr int kNameShift = 48;
constexpr int kKindShift = 62;
static_assert(LaunchTally::kMaxNames == 1 << (kKindShift - kNameShift));
static_assert(kWorkKinds <= 1 << (64 - kKindShift));

// C++23 has no atomic_ref of a const object yet.
std::atomic_ref<uint64_t> Word(const uint64_t& word) {
  return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(word));
}

uint32_t NameIn(uint64_t what) {
  return static_cast<uint32_t>(what >> kNameShift) % LaunchTally::kMaxNames;
}

}  // namespace

Result<LaunchTally> LaunchTally::Make() {
  auto slots = LazyArray<Slot>::Make(kSlots);
  if (!slots) return Wrap(slots.error(), "counting launches");
  auto names = NameTable::Make(kMaxNames, "(other kernels)");
  if (!names) return std::unexpected(names.error());
  return LaunchTally(*std::move(slots), *std::move(names));
}

// Of a name no more than what tells most of those apart that one line launches: whoever has the
// hash compares the names.
uint64_t LaunchTally::HashOf(const TalliedLaunch& launch) {
  const std::string_view name = launch.name;
  uint64_t middle = 0, end = 0;
  const size_t part = std::min(name.size(), sizeof end);
  std::memcpy(&middle, name.data() + (name.size() - part) / 2, part);
  std::memcpy(&end, name.data() + name.size() - part, part);
  const uint64_t place = uint64_t{launch.context} << 2 | static_cast<uint64_t>(launch.kind);
  const uint64_t named = MixBits(middle ^ MixBits(end ^ name.size() << 48 ^ place));
  return std::max<uint64_t>(1, MixBits(named ^ launch.path ^ launch.period << 32));
}

bool LaunchTally::IsOf(const Slot& slot, std::string_view name) const {
  const uint32_t number = NameIn(Word(slot.what).load(std::memory_order_relaxed));
  return number == NameTable::kOther || names_.text(number) == name;
}

bool LaunchTally::Count(const TalliedLaunch& launch) noexcept {
  const uint64_t hash = HashOf(launch);
  for (size_t i = 0; i < kTries; ++i) {
    const Slot& slot = slots_[(hash + i) % kSlots];
    const uint64_t found = Word(slot.hash).load(std::memory_order_acquire);
    if (found == 0) return false;
    if (found != hash || !IsOf(slot, launch.name)) continue;
    Word(slot.count).fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void LaunchTally::CountNew(const TalliedLaunch& launch, uint32_t device) noexcept {
  const std::lock_guard lock(shared_->mutex);
  // Another thread may have been first.
  if (launch.period != period() || Count(launch)) return;
  const uint64_t hash = HashOf(launch);
  Slot* const slot = FindFree(hash);
  const auto name = slot != nullptr ? NumberOf(launch.name) : std::nullopt;
  if (!name) return CountApart(launch.kind);
  const uint64_t what = static_cast<uint64_t>(launch.kind) << kKindShift |
                        uint64_t{*name} << kNameShift | uint64_t{device & 0xffff} << kDeviceShift |
                        launch.path;
  Word(slot->what).store(what, std::memory_order_relaxed);
  Word(slot->count).store(1, std::memory_order_relaxed);
  Word(slot->hash).store(hash, std::memory_order_release);
}

void LaunchTally::CountApart(WorkKind kind) noexcept {
  shared_->without_room[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
}

LaunchTally::Slot* LaunchTally::FindFree(uint64_t hash) {
  for (size_t i = 0; i < kTries; ++i) {
    Slot& slot = slots_[(hash + i) % kSlots];
    if (Word(slot.hash).load(std::memory_order_relaxed) == 0) return &slot;
  }
  return nullptr;
}

// Nullopt where there is no memory for it.
std::optional<uint32_t> LaunchTally::NumberOf(std::string_view name) noexcept {
  try {
    return names_.Intern(name);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void LaunchTally::Clear() {
  const std::lock_guard lock(shared_->mutex);
  shared_->period.fetch_add(1, std::memory_order_release);
  slots_.Zero();
  for (auto& count : shared_->without_room) count.store(0, std::memory_order_relaxed);
}

std::vector<TallyRow> LaunchTally::Rows() const {
  std::vector<TallyRow> rows;
  const std::lock_guard lock(shared_->mutex);
  for (size_t kind = 0; kind < kWorkKinds; ++kind) {
    const uint64_t count = shared_->without_room[kind].load(std::memory_order_relaxed);
    if (count == 0) continue;
    rows.push_back({.kind = static_cast<WorkKind>(kind),
                    .path = kUnknownOrigin.path,
                    .name = names_.text(NameTable::kOther).data(),
                    .count = count,
                    .is_of_several = true});
  }
  for (size_t i = 0; i < kSlots; ++i) {
    const Slot& slot = slots_.data()[i];
    if (Word(slot.hash).load(std::memory_order_acquire) == 0) continue;
    const uint64_t what = Word(slot.what).load(std::memory_order_relaxed);
    rows.push_back({.kind = static_cast<WorkKind>(what >> kKindShift),
                    .path = static_cast<uint32_t>(what),
                    .device = static_cast<uint32_t>(what >> kDeviceShift) & 0xffff,
                    .name = names_.text(NameIn(what)).data(),
                    .count = Word(slot.count).load(std::memory_order_relaxed),
                    .is_of_several = NameIn(what) == NameTable::kOther});
  }
  return rows;
}

}  // namespace pystrobe::gpu
