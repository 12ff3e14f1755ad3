// SPDX-License-Identifier: Apache-2.0
//
// Formats: Objects/lnotab_notes.txt of 3.8 to 3.10, Objects/locations.md of 3.11 and
// InternalDocs/code_objects.md of 3.14.
#include "sampler/pyabi/line_table.h"

namespace pystrobe::pyabi {
namespace {

uint32_t ToLine(int64_t line) {
  return line > 0 && line <= INT32_MAX ? static_cast<uint32_t>(line) : 0;
}

/// 3.8, 3.9: pairs {bytes, lines}: so many bytes on, the line changes by so much.
uint32_t LnotabLine(std::span<const std::byte> table, int32_t first_line, int64_t offset) {
  int64_t line = first_line;
  int64_t start = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    start += static_cast<uint8_t>(table[i]);
    if (start > offset) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return ToLine(line);
}

/// 3.10: pairs {bytes, lines}: change the line by so much, it then holds for so many bytes.
uint32_t LinetableLine(std::span<const std::byte> table, int32_t first_line, int64_t offset) {
  constexpr int8_t kNoLine = -128;
  int64_t line = first_line;
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += static_cast<uint8_t>(table[i]);
    const auto change = static_cast<int8_t>(table[i + 1]);
    if (change != kNoLine) line += change;
    if (end > offset) return change == kNoLine ? 0 : ToLine(line);
  }
  return 0;
}

/// A number in groups of six bits, the lowest first, bit 6 set in all but the last; its own lowest
/// bit is the sign. Stops at the end of `table`.
int64_t SignedVarint(std::span<const std::byte> table, size_t at) {
  uint64_t value = 0;
  for (int shift = 0; at < table.size() && shift < 60; ++at, shift += 6) {
    const auto byte = static_cast<uint8_t>(table[at]);
    value |= uint64_t{byte & 63U} << shift;
    if ((byte & 64) == 0) break;
  }
  const auto magnitude = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

/// How the kinds of entry change the line; `at` is the byte behind the first of the entry.
int64_t LineChange(int kind, std::span<const std::byte> table, size_t at) {
  constexpr int kOneLine0 = 10;
  constexpr int kNoColumns = 13;
  constexpr int kLong = 14;
  if (kind == kNoColumns || kind == kLong) return SignedVarint(table, at);
  if (kind >= kOneLine0 && kind < kNoColumns) return kind - kOneLine0;
  return 0;
}

/// 3.11+: entries whose first byte, alone with bit 7 set, holds a kind and a length in code units.
uint32_t LocationsLine(std::span<const std::byte> table, int32_t first_line, int64_t offset) {
  constexpr int kNone = 15;
  int64_t line = first_line;
  int64_t end = 0;
  size_t at = 0;
  while (at < table.size()) {
    const auto first = static_cast<uint8_t>(table[at++]);
    const int kind = first >> 3 & 15;
    line += LineChange(kind, table, at);
    if (line < INT32_MIN || line > INT32_MAX) return 0;
    end += ((first & 7) + 1) * 2;
    if (end > offset) return kind == kNone ? 0 : ToLine(line);
    while (at < table.size() && (static_cast<uint8_t>(table[at]) & 128) == 0) ++at;
  }
  return 0;
}

}  // namespace

uint32_t LineAt(LineTableStyle style, std::span<const std::byte> table, int32_t first_line,
                int64_t offset) {
  if (offset < 0) return ToLine(first_line);
  switch (style) {
    case LineTableStyle::kLnotab:
      return LnotabLine(table, first_line, offset);
    case LineTableStyle::kLinetable:
      return LinetableLine(table, first_line, offset);
    case LineTableStyle::kLocations:
      return LocationsLine(table, first_line, offset);
  }
  return 0;
}

}  // namespace pystrobe::pyabi
