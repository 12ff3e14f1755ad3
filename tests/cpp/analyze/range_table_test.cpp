// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/range_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/range_example.h"

namespace pystrobe {
namespace {

using ::testing::ElementsAre;

/// "  name span/busy/works@streams", indented by depth.
std::vector<std::string> Lines(const RangeRecord& record, const Tables& tables,
                               const std::optional<std::string>& stream = {}) {
  std::vector<std::string> lines;
  for (const RangeRow& row : MakeRangeTable(record, stream).rows) {
    lines.push_back(std::string(2 * size_t{row.depth}, ' ') +
                    fmt::format("{} {}/{}/{}@{}", tables.text(record.ranges[row.range].name),
                                row.span_ns, row.busy_ns, row.works, row.streams));
  }
  return lines;
}

TEST(RangeTableTest, IsATreeByTime) {
  Tables tables;
  const RangeRecord record = testing::MakeRangeExample(tables, 0, 1);
  EXPECT_TRUE(MakeRangeTable(record).has_work);
  EXPECT_THAT(
      Lines(record, tables),
      ElementsAre("step 3902128/3900192/6@2", "  forward 1210064/1210064/2@1",
                  "  backward 100032/100032/1@1", "    all_reduce 0/0/0@0", "load ahead 0/0/0@0"));
  EXPECT_THAT(Lines(record, tables, "stream 13"),
              ElementsAre("step 2500064/2500064/2@1", "  forward 0/0/0@0", "  backward 0/0/0@0",
                          "    all_reduce 0/0/0@0", "load ahead 0/0/0@0"));
  EXPECT_FALSE(MakeRangeTable(record, "stream 99").has_work);
}

TEST(RangeTableTest, WithoutWorkIsByTheHostsTime) {
  Tables tables;
  RangeRecord record = testing::MakeRangeExample(tables, 0, 1);
  record.streams.clear();
  record.ranges[2].host_ns = 250'000;
  EXPECT_THAT(Lines(record, tables),
              ElementsAre("step 0/0/0@0", "  backward 0/0/0@0", "    all_reduce 0/0/0@0",
                          "  forward 0/0/0@0", "load ahead 0/0/0@0"));
}

TEST(RangeTableTest, HasTheLargerShareButNoMoreThanAround) {
  Tables tables;
  RangeRecord record = testing::MakeRangeExample(tables, 0, 1);
  record.ranges[3].host_ns = 1'000'000'000;  // as if it went on after what it was begun in
  std::vector<double> shares(record.ranges.size());
  for (const RangeRow& row : MakeRangeTable(record).rows) shares[row.range] = row.share;
  EXPECT_DOUBLE_EQ(shares[0], 1);
  EXPECT_DOUBLE_EQ(shares[1], 1'210'064.0 / 3'902'128);
  EXPECT_DOUBLE_EQ(shares[2], 100'032.0 / 3'902'128);
  EXPECT_DOUBLE_EQ(shares[3], shares[2]);
  EXPECT_DOUBLE_EQ(shares[4], 2.0 / 5.5);
}

TEST(RangeTableTest, MayBeAsDeepAsAFileCanHold) {
  constexpr uint32_t kDepth = 1 << 18;
  RangeRecord record;
  for (uint32_t i = 0; i < kDepth; ++i) {
    record.ranges.push_back({.parent = i == 0 ? NamedRange::kNoParent : i - 1, .host_ns = 1});
  }
  const RangeTable table = MakeRangeTable(record);
  ASSERT_EQ(table.rows.size(), kDepth);
  EXPECT_EQ(table.rows.back().depth, kDepth - 1);
  EXPECT_TRUE(MakeRangeTable({}).rows.empty());
}

}  // namespace
}  // namespace pystrobe
