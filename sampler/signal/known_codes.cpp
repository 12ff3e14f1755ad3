// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/known_codes.h"

#include <bit>

#include "profiler/base/hash.h"

namespace pystrobe::signals {

uint64_t FingerprintOf(const pyabi::CodeIdentity& identity) {
  uint64_t mixed = 0;
  for (const Address part :
       {identity.type, identity.name, identity.qualname, identity.filename, identity.line_table}) {
    mixed = MixBits(mixed ^ part);
  }
  for (const int32_t part : {identity.first_line, identity.flags, identity.arg_count}) {
    mixed = MixBits(mixed ^ static_cast<uint32_t>(part));
  }
  return mixed;
}

Result<KnownCodes> KnownCodes::Make(size_t capacity) {
  auto places = LazyArray<Place>::Make(std::bit_ceil(capacity));
  if (!places) return std::unexpected(places.error());
  places->resize(places->capacity());
  return KnownCodes(*std::move(places));
}

KnownCodes::Place& KnownCodes::PlaceOf(Address code, size_t attempt) const {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  const size_t at = (((code / 16) * kGolden) >> 20) + attempt;
  return places_[at & (places_.size() - 1)];
}

KnownCodes::Known KnownCodes::Of(Address code, uint64_t generation) const {
  if (Generation().load(std::memory_order_acquire) != generation) return {};
  for (size_t i = 0; i < kTries; ++i) {
    Place& place = PlaceOf(code, i);
    const uint64_t found = std::atomic_ref(place.code).load(std::memory_order_acquire);
    if (found == 0) break;
    if ((found & ~kKnowledgeBits) != code) continue;
    return {static_cast<CodeKnowledge>(found & kKnowledgeBits),
            std::atomic_ref(place.fingerprint).load(std::memory_order_relaxed)};
  }
  return {};
}

void KnownCodes::Set(Address code, const Known& known) {
  for (size_t i = 0; i < kTries; ++i) {
    Place& place = PlaceOf(code, i);
    const uint64_t found = std::atomic_ref(place.code).load(std::memory_order_relaxed);
    if (found != 0 && (found & ~kKnowledgeBits) != code) continue;
    std::atomic_ref(place.fingerprint).store(known.fingerprint, std::memory_order_relaxed);
    std::atomic_ref(place.code)
        .store(code | static_cast<uint64_t>(known.knowledge), std::memory_order_release);
    empty_ = false;
    return;
  }
}

void KnownCodes::Clear(uint64_t generation) {
  if (!std::exchange(empty_, true)) {
    for (Place& place : places_) {
      std::atomic_ref(place.code).store(0, std::memory_order_release);
    }
  }
  Generation().store(generation, std::memory_order_release);
}

}  // namespace pystrobe::signals
