// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/gpu_idle.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "profiler/analyze/gpu_lines.h"

namespace pystrobe {
namespace {

using Line = std::optional<FrameId>;

/// Root first, of Python.
std::vector<FrameId> CallsOf(StackId stack, const Tables& tables) {
  std::vector<FrameId> calls;
  for (const FrameId frame : tables.FramesOf(stack)) {
    if (analyze::IsPythonLine(frame, tables)) calls.push_back(frame);
  }
  return calls;
}

/// The innermost call that both are in, at the line of each.
std::pair<Line, Line> CommonCall(StackId from, StackId to, const Tables& tables) {
  const std::vector<FrameId> before = CallsOf(from, tables), after = CallsOf(to, tables);
  const auto [left, right] = std::ranges::mismatch(before, after);
  const auto function = [&tables](FrameId frame) { return tables.frame(frame).function; };
  const bool is_same_call =
      left != before.end() && right != after.end() && function(*left) == function(*right);
  if (is_same_call) return {*left, *right};
  if (right == after.begin()) return {};
  return {*std::prev(right), *std::prev(right)};
}

template <typename Row, typename Sum>
void AddTo(Row& row, const Sum& sum) {
  row.count += sum.count;
  row.total_ns += sum.total_ns;
  row.max_ns = std::max(row.max_ns, sum.max_ns);
}

template <typename Rows>
void SortByTime(Rows& rows) {
  std::ranges::stable_sort(rows,
                           [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
}

}  // namespace

GpuIdleTable MakeGpuIdleTable(const RecordingSource& recording) {
  const GpuRecord& record = *recording.gpu();
  const Tables& tables = recording.tables();
  const std::vector<Line> lines = analyze::PythonLinesOf(tables);
  GpuIdleTable table;
  for (const GpuUse& use : record.uses) {
    table.busy_ns += use.busy_ns;
    table.idle_ns += use.idle_ns;
  }
  std::map<std::tuple<GpuIdleCause, Line, Line>, GpuIdleRow> rows;
  for (const GpuIdle& idle : record.idles) {
    table.by_cause[static_cast<size_t>(idle.cause)] += idle.total_ns;
    std::pair<Line, Line> place{lines[ToIndex(idle.to)], lines[ToIndex(idle.to)]};
    if (idle.cause == GpuIdleCause::kHost) {
      place = CommonCall(idle.from, idle.to, tables);
    } else if (idle.cause == GpuIdleCause::kWait) {
      place.first = place.second = lines[ToIndex(idle.from)];
    }
    GpuIdleRow& row = rows[{idle.cause, place.first, place.second}];
    row.cause = idle.cause;
    std::tie(row.from, row.to) = place;
    AddTo(row, idle);
  }
  for (const auto& [key, row] : rows) table.rows.push_back(row);
  SortByTime(table.rows);
  std::map<Line, GpuWaitRow> waits;
  for (const GpuWait& wait : record.waits) {
    GpuWaitRow& row = waits[lines[ToIndex(wait.stack)]];
    row.line = lines[ToIndex(wait.stack)];
    AddTo(row, wait);
  }
  for (const auto& [line, row] : waits) table.waits.push_back(row);
  SortByTime(table.waits);
  return table;
}

}  // namespace pystrobe
