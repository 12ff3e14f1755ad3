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

class CommonCalls {
 public:
  explicit CommonCalls(const Tables& tables) : tables_(tables) {}

  /// The innermost call that both are in, at the line of each.
  std::pair<Line, Line> Of(StackId from, StackId to) {
    const std::vector<FrameId> before = CallsOf(from), after = CallsOf(to);
    const auto [left, right] = std::ranges::mismatch(before, after);
    const auto function = [this](FrameId frame) { return tables_.frame(frame).function; };
    const bool is_same_call =
        left != before.end() && right != after.end() && function(*left) == function(*right);
    if (is_same_call) return {*left, *right};
    if (right == after.begin()) return {};
    return {*std::prev(right), *std::prev(right)};
  }

 private:
  /// Root first, of Python. Of a file whose stacks are without end, none in the end.
  std::vector<FrameId> CallsOf(StackId stack) {
    constexpr size_t kMostFrames = size_t{1} << 26;
    std::vector<FrameId> calls;
    for (; stack != kEmptyStack && looked_at_ < kMostFrames; ++looked_at_) {
      const StackNode& node = tables_.stack(stack);
      if (analyze::IsPythonLine(node.frame, tables_)) calls.push_back(node.frame);
      stack = node.parent;
    }
    std::ranges::reverse(calls);
    return calls;
  }

  const Tables& tables_;
  size_t looked_at_ = 0;  // frames, of all
};

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
  CommonCalls common_calls(tables);
  std::map<std::tuple<GpuIdleCause, Line, Line>, GpuIdleRow> rows;
  for (const GpuIdle& idle : record.idles) {
    table.by_cause[static_cast<size_t>(idle.cause)] += idle.total_ns;
    std::pair<Line, Line> place{lines[ToIndex(idle.to)], lines[ToIndex(idle.to)]};
    if (idle.cause == GpuIdleCause::kHost) {
      place = common_calls.Of(idle.from, idle.to);
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
