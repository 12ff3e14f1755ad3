// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/line_table.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <vector>

namespace pystrobe::pyabi {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Lnotab, AddsLinesWhenAnInstructionBegins) {
  const auto table = Bytes({0, 1, 50, 6, 8, -2, 2, 127, 0, 73});
  const auto line = [&](int64_t offset) {
    return LineAt(LineTableStyle::kLnotab, table, 10, offset);
  };
  EXPECT_EQ(line(-1), 10U);
  EXPECT_EQ(line(0), 11U);
  EXPECT_EQ(line(48), 11U);
  EXPECT_EQ(line(50), 17U);
  EXPECT_EQ(line(58), 15U);
  EXPECT_EQ(line(60), 215U);
  EXPECT_EQ(line(100000), 215U);
}

TEST(Lnotab, EmptyTableIsAllOnTheFirstLine) {
  EXPECT_EQ(LineAt(LineTableStyle::kLnotab, {}, 3, 20), 3U);
}

TEST(Linetable, LinesHoldForTheBytesOfTheirEntry) {
  // 6 bytes on line 11, 4 without a line, 2 on line 9, then 254 and 10 more on line 109.
  const auto table = Bytes({6, 1, 4, -128, 2, -2, 0, 100, 254, 0, 10, 0});
  const auto line = [&](int64_t offset) {
    return LineAt(LineTableStyle::kLinetable, table, 10, offset);
  };
  EXPECT_EQ(line(-2), 10U);
  EXPECT_EQ(line(0), 11U);
  EXPECT_EQ(line(4), 11U);
  EXPECT_EQ(line(6), 0U);
  EXPECT_EQ(line(8), 0U);
  EXPECT_EQ(line(10), 9U);
  EXPECT_EQ(line(12), 109U);
  EXPECT_EQ(line(274), 109U);
  EXPECT_EQ(line(276), 0U);
}

TEST(Locations, EveryKindOfEntry) {
  const auto table = Bytes({
      0x80 | 13 << 3 | 0, 2,                      // 1 unit, no columns, +1
      0x80 | 3 << 3 | 1,  0x24,                   // 2 units, short, same line
      0x80 | 11 << 3 | 0, 3,         9,           // 1 unit, one line, +1
      0x80 | 12 << 3 | 7, 3,         9,           // 8 units, one line, +2
      0x80 | 15 << 3 | 2,                         // 3 units, none
      0x80 | 14 << 3 | 0, 0x40 | 8,  2, 0, 1, 1,  // 1 unit, long, +68
      0x80 | 13 << 3 | 0, 0x40 | 41, 2,           // 1 unit, no columns, -84
  });
  const auto line = [&](int64_t unit) {
    return LineAt(LineTableStyle::kLocations, table, 100, unit * 2);
  };
  EXPECT_EQ(line(-1), 100U);
  EXPECT_EQ(line(0), 101U);
  EXPECT_EQ(line(1), 101U);
  EXPECT_EQ(line(2), 101U);
  EXPECT_EQ(line(3), 102U);
  EXPECT_EQ(line(4), 104U);
  EXPECT_EQ(line(11), 104U);
  EXPECT_EQ(line(12), 0U);
  EXPECT_EQ(line(14), 0U);
  EXPECT_EQ(line(15), 172U);
  EXPECT_EQ(line(16), 88U);
  EXPECT_EQ(line(17), 0U);
}

TEST(LineAt, LinesThatCannotBeAreNone) {
  EXPECT_EQ(LineAt(LineTableStyle::kLnotab, {}, -5, 0), 0U);
  EXPECT_EQ(LineAt(LineTableStyle::kLinetable, Bytes({8, -100}), 10, 0), 0U);
  EXPECT_EQ(LineAt(LineTableStyle::kLocations,
                   Bytes({0x80 | 13 << 3, 127, 127, 127, 127, 127, 127}), INT32_MAX, 0),
            0U);
}

TEST(LineAt, SurvivesNoise) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> table(random() % 64);
    for (std::byte& byte : table) byte = static_cast<std::byte>(random());
    for (auto style :
         {LineTableStyle::kLnotab, LineTableStyle::kLinetable, LineTableStyle::kLocations}) {
      const auto first = static_cast<int32_t>(random());
      const auto offset = static_cast<int64_t>(random() >> random() % 64);
      EXPECT_LE(LineAt(style, table, first, offset), static_cast<uint32_t>(INT32_MAX));
    }
  }
}

}  // namespace
}  // namespace pystrobe::pyabi
