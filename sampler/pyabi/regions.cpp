// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/regions.h"

#include <algorithm>

#include "profiler/base/hash.h"

namespace pystrobe::pyabi {
namespace {

constexpr std::string_view kOther = "(other regions)";

uint64_t HashOf(Regions::Id parent, std::string_view name) {
  uint64_t hash = parent;
  for (const char c : name) hash = MixBits(hash ^ static_cast<unsigned char>(c));
  return hash;
}

constinit std::atomic<const Regions*> of_this_process{nullptr};

}  // namespace

Regions& Regions::OfThisProcess() {
  static auto& regions = *new Regions;
  of_this_process.store(&regions);
  return regions;
}

const Regions* Regions::OfThisProcessIfAny() { return of_this_process.load(); }

size_t Regions::PlaceOf(Address frame) { return MixBits(frame) % kSlots; }

std::optional<size_t> Regions::Find(Address frame) const {
  const size_t place = PlaceOf(frame), tries = tries_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < tries; ++i) {
    const size_t at = (place + i) % kSlots;
    if (slots_[at].frame.load(std::memory_order_acquire) == frame) return at;
  }
  return std::nullopt;
}

Regions::Slot* Regions::Take(Address frame) {
  const size_t place = PlaceOf(frame);
  for (size_t i = 0; i < kTries; ++i) {
    Slot& slot = slots_[(place + i) % kSlots];
    Address free = 0;
    if (!slot.frame.compare_exchange_strong(free, kTaken)) continue;
    for (size_t most = tries_.load(); most <= i;) tries_.compare_exchange_weak(most, i + 1);
    count_.fetch_add(1);
    return &slot;
  }
  return nullptr;
}

void Regions::Enter(Address frame, Address code, std::string_view name) {
  const auto found = Find(frame);
  Slot* slot = found ? &slots_[*found] : nullptr;
  // Left by a frame that has gone, without leaving its regions.
  if (slot != nullptr && slot->code.load() != code) Set(*slot, 0);
  if (slot == nullptr || slot->id.load() == 0) slot = Take(frame);
  if (slot == nullptr) return;
  const Id id = Intern(slot->id.load(), name);
  slot->code.store(code);
  slot->id.store(id);
  slot->frame.store(frame, std::memory_order_release);
}

void Regions::Leave(Address frame, std::string_view name) {
  if (const auto found = Find(frame)) {
    Set(slots_[*found], Without(slots_[*found].id.load(), name));
  }
}

void Regions::Set(Slot& slot, Id id) {
  slot.id.store(id);
  if (id != 0) return;
  count_.fetch_sub(1);
  slot.frame.store(0);
}

Regions::Id Regions::Of(const RawFrame& frame) const {
  const auto found = Find(frame.frame);
  return found && slots_[*found].code.load() == frame.code ? slots_[*found].id.load() : 0;
}

// Two threads that need the same name at once may make two of it, which does no harm.
Regions::Id Regions::Intern(Id parent, std::string_view name) {
  size_t place_of_id = HashOf(parent, name) % kIds;
  for (; const Id id = ids_[place_of_id].load(); place_of_id = (place_of_id + 1) % kIds) {
    const Name& known = names_[id - 1U];
    if (known.parent == parent && *known.text == name) return id;
  }
  const bool is_full = name_count_.load() + 1 >= kMostNames;
  // Within one that is known it is that one's; Leave then finds nothing to leave.
  if (is_full && parent != 0) return parent;
  if (is_full && name != kOther) return Intern(0, kOther);
  const size_t place = name_count_.fetch_add(1);
  if (place >= kMostNames) return 0;
  names_[place].parent = parent;
  names_[place].text = new std::string(name);
  const Id id = static_cast<Id>(place + 1);
  for (Id none = 0; !ids_[place_of_id].compare_exchange_strong(none, id); none = 0) {
    place_of_id = (place_of_id + 1) % kIds;
  }
  return id;
}

Regions::Id Regions::Without(Id id, std::string_view name) {
  if (id == 0) return 0;
  const Name& innermost = names_[id - 1U];
  if (*innermost.text == name || *innermost.text == kOther) return innermost.parent;
  return Intern(Without(innermost.parent, name), *innermost.text);
}

std::vector<std::string> Regions::NamesOf(Id id) const {
  std::vector<std::string> names;
  for (; id != 0; id = names_[id - 1U].parent) names.push_back(*names_[id - 1U].text);
  std::ranges::reverse(names);
  return names;
}

}  // namespace pystrobe::pyabi
