// SPDX-License-Identifier: Apache-2.0
//
// The generated table behind LayoutFromTable(). Private to this room.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sampler/pyabi/layout.h"

namespace pystrobe::pyabi {

inline constexpr uint8_t kFirstTableMinor = 8;
inline constexpr uint8_t kLastTableMinor = 12;

/// One field of Layout and its offset in 3.8, 3.9, 3.10, 3.11 and 3.12.
struct LayoutRow {
  const char* name;
  uint32_t& (*field)(Layout&);
  std::array<uint32_t, kLastTableMinor - kFirstTableMinor + 1> values;
};

std::span<const LayoutRow> LayoutRows();

}  // namespace pystrobe::pyabi
