// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <tuple>

#include "profiler/analyze/gpu_lines.h"
#include "profiler/analyze/gpu_streams.h"

namespace pystrobe {
namespace {

/// What makes a row of its own.
struct RowKey {
  GpuWorkKind kind;
  StringId name;
  // Of the shape: waves and tail are the grid's, which may be another with each launch.
  uint32_t blocks_per_multiprocessor = 0;
  double theoretical = 0;

  auto operator<=>(const RowKey&) const = default;
};

RowKey KeyOf(const GpuKernel& kernel, const GpuSum& sum) {
  RowKey key{.kind = kernel.kind, .name = kernel.name};
  if (sum.occupancy) {
    key.blocks_per_multiprocessor = sum.occupancy->blocks_per_multiprocessor;
    key.theoretical = sum.occupancy->theoretical;
  }
  return key;
}

/// A row and what is needed until all sums are in it.
struct OpenRow {
  GpuRow row;
  std::array<uint64_t, GpuSum::kBuckets> buckets{};
  uint64_t largest = 0;  // weight
  bool has_largest = false;
  std::map<FrameId, uint64_t> lines;  // weight by what launched it
};

/// `weight`: time, or number where nobody asked for that.
void AddTo(OpenRow& open, const GpuKernel& kernel, const GpuSum& sum, uint64_t weight,
           const std::optional<FrameId>& line) {
  GpuRow& row = open.row;
  if (!open.has_largest || weight > open.largest) {
    open.has_largest = true;
    open.largest = weight;
    row.kind = kernel.kind;
    row.name = kernel.name;
    row.short_name = kernel.short_name;
    row.block = kernel.block;
    row.grid = sum.last_grid;
    row.occupancy = sum.occupancy;
    row.advice = sum.advice;
  }
  if (sum.count > 0) {
    row.min_ns = row.count == 0 ? sum.min_ns : std::min(row.min_ns, sum.min_ns);
    row.max_ns = std::max(row.max_ns, sum.max_ns);
  }
  row.count += sum.count;
  row.untimed += sum.untimed;
  row.total_ns += sum.total_ns;
  row.bytes += sum.bytes;
  for (size_t i = 0; i < sum.buckets.size(); ++i) open.buckets[i] += sum.buckets[i];
  if (line) open.lines[*line] += weight;
}

/// The bucket that has the work of this rank in the order of times, counted from 0; none: there
/// are fewer works in them than that.
std::optional<size_t> BucketOf(const OpenRow& open, uint64_t rank) {
  for (size_t i = 0; i < open.buckets.size(); ++i) {
    if (rank < open.buckets[i]) return i;
    rank -= open.buckets[i];
  }
  return std::nullopt;
}

/// Of an even number of works it is between the two in the middle.
std::optional<GpuMedian> MedianOf(const OpenRow& open) {
  const GpuRow& row = open.row;
  if (row.count == 0) return std::nullopt;
  const auto lower = BucketOf(open, (row.count - 1) / 2);
  const auto upper = BucketOf(open, row.count / 2);
  if (!lower || !upper) return std::nullopt;
  const uint64_t from = *lower == 0 ? 0 : uint64_t{1} << (*lower - 1);
  const bool is_last = *upper == GpuSum::kBuckets - 1;
  const uint64_t to = is_last ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << *upper) - 1;
  return GpuMedian{std::max(from, row.min_ns), std::min(to, row.max_ns)};
}

GpuRow Close(const OpenRow& open) {
  GpuRow row = open.row;
  row.median = MedianOf(open);
  const auto most = std::ranges::max_element(
      open.lines, {}, [](const std::pair<const FrameId, uint64_t>& line) { return line.second; });
  if (most != open.lines.end()) row.line = most->first;
  return row;
}

}  // namespace

double GpuRow::mean_ns() const {
  return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count);
}

double GpuRow::gigabytes_per_second() const {
  if (kind == GpuWorkKind::kKernel || total_ns == 0 || untimed > 0) return 0;
  return static_cast<double>(bytes) / static_cast<double>(total_ns);
}

GpuTable MakeGpuTable(const RecordingSource& recording, const std::optional<std::string>& stream) {
  const GpuRecord& record = *recording.gpu();
  const Tables& tables = recording.tables();
  GpuTable table{.launches_only = record.quality.launches_only,
                 .rows = {},
                 .labels = KernelLabels(record, tables)};
  const std::vector<std::optional<FrameId>> lines = analyze::PythonLinesOf(tables);
  std::map<RowKey, OpenRow> rows;
  for (const GpuSum& sum : record.sums) {
    if (!analyze::IsMeant(sum, stream)) continue;
    const GpuKernel& kernel = record.kernels[sum.kernel];
    const uint64_t weight = table.launches_only ? sum.untimed : sum.total_ns;
    AddTo(rows[KeyOf(kernel, sum)], kernel, sum, weight, lines[ToIndex(sum.stack)]);
    GpuKindSum& kind = table.kinds[static_cast<size_t>(kernel.kind)];
    kind.count += sum.count + sum.untimed;
    kind.total_ns += sum.total_ns;
    table.count += sum.count + sum.untimed;
    table.total_ns += sum.total_ns;
  }
  for (const auto& [key, open] : rows) table.rows.push_back(Close(open));
  std::ranges::stable_sort(table.rows, [&tables](const GpuRow& a, const GpuRow& b) {
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    if (a.untimed != b.untimed && a.total_ns == 0) return a.untimed > b.untimed;
    const auto rest = [&tables](const GpuRow& row) {
      return std::tie(tables.text(row.name), row.kind, row.block);
    };
    return rest(a) < rest(b);
  });
  return table;
}

}  // namespace pystrobe
