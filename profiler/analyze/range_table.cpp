// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/range_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "profiler/analyze/gpu_streams.h"

namespace pystrobe {
namespace {

constexpr uint32_t kNone = NamedRange::kNoParent;

/// Which ranges are within which. Trees may be as deep as there are ranges: nothing recurses.
struct Family {
  uint32_t first_root = kNone;
  std::vector<uint32_t> first_child, next;  // by range
};

/// `order`: of all ranges, in which siblings are to come.
Family FamilyOf(const RangeRecord& record, const std::vector<uint32_t>& order) {
  Family family;
  family.first_child.resize(order.size(), kNone);
  family.next.resize(order.size(), kNone);
  for (auto range = order.rbegin(); range != order.rend(); ++range) {
    const uint32_t parent = record.ranges[*range].parent;
    uint32_t& first = parent == kNone ? family.first_root : family.first_child[parent];
    family.next[*range] = first;
    first = *range;
  }
  return family;
}

double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Sets the shares, and depths, of rows by range.
void Weigh(const RangeRecord& record, std::vector<RangeRow>& rows) {
  uint64_t host_ns = 0, span_ns = 0;
  for (const RangeRow& row : rows) {
    if (record.ranges[row.range].parent != kNone) continue;
    host_ns += record.ranges[row.range].host_ns;
    span_ns += row.span_ns;
  }
  // A parent has the smaller index.
  for (RangeRow& row : rows) {
    const NamedRange& range = record.ranges[row.range];
    row.share = std::max(ShareOf(range.host_ns, host_ns), ShareOf(row.span_ns, span_ns));
    if (range.parent == kNone) continue;
    row.depth = rows[range.parent].depth + 1;
    row.share = std::min(row.share, rows[range.parent].share);
  }
}

}  // namespace

RangeTable MakeRangeTable(const RangeRecord& record, const std::optional<std::string>& stream) {
  RangeTable table;
  std::vector<RangeRow> rows(record.ranges.size());
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i].range = i;
  for (const RangeOnStream& work : record.streams) {
    if (!analyze::IsMeant({.device = work.device, .stream = work.stream}, stream)) continue;
    RangeRow& row = rows[work.range];
    ++row.streams;
    row.span_ns += work.span_ns;
    row.busy_ns += work.busy_ns;
    row.works += work.works;
    table.has_work = true;
  }
  Weigh(record, rows);
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](uint32_t i) {
    return std::tuple(rows[i].span_ns, record.ranges[i].host_ns);
  });
  const Family family = FamilyOf(record, order);
  table.rows.reserve(rows.size());
  std::vector<uint32_t> open;
  for (uint32_t next = family.first_root; next != kNone || !open.empty();) {
    if (next == kNone) {
      next = family.next[open.back()];
      open.pop_back();
      continue;
    }
    table.rows.push_back(rows[next]);
    open.push_back(next);
    next = family.first_child[next];
  }
  return table;
}

}  // namespace pystrobe
