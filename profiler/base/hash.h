// SPDX-License-Identifier: Apache-2.0
//
// Hashing of ids: small dense integers, alone or two in one number. [any thread]
#pragma once

#include <cstddef>
#include <cstdint>

namespace pystrobe {

/// Spreads the bits of `x`, which robin hood hashing needs. Finaliser of SplitMix64 (Steele, Lea,
/// Flood, OOPSLA 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Hash of two ids in one number.
struct PairHash {
  size_t operator()(uint64_t key) const { return MixBits(key); }
};

}  // namespace pystrobe
