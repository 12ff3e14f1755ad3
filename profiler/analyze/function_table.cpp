// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <tuple>

#include "profiler/analyze/profile.h"
#include "profiler/analyze/stack_sums.h"

namespace pystrobe {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

struct SelfAndTotal {
  Weights self;
  Weights total;
};

/// Walks the stack tree once, depth first, and adds each stack to its function and to its frame.
/// An inclusive weight is added only where the function (or frame) is not already on the path to
/// the root: that is what counts recursion once.
class FunctionSums {
 public:
  FunctionSums(const Tables& tables, std::span<const ThreadProfile> threads)
      : functions(tables.function_count()),
        frames(tables.frame_count()),
        tables_(tables),
        self_(analyze::SelfByStack(tables, threads)),
        total_(self_),
        first_child_(self_.size(), kNone),
        next_sibling_(self_.size(), kNone),
        functions_on_path_(tables.function_count(), 0),
        frames_on_path_(tables.frame_count(), 0) {
    analyze::AddChildrenToParents(tables, total_);
    LinkChildren();
    Walk();
  }

  std::vector<SelfAndTotal> functions;  ///< by FunctionId
  std::vector<SelfAndTotal> frames;     ///< by FrameId

 private:
  /// Stacks without weight are left out with all that is above them.
  void LinkChildren() {
    for (uint32_t i = static_cast<uint32_t>(self_.size()); i-- > 1;) {
      if (analyze::IsZero(total_[i])) continue;
      const uint32_t parent = ToIndex(tables_.stack(StackId{i}).parent);
      next_sibling_[i] = first_child_[parent];
      first_child_[parent] = i;
    }
  }

  /// Iterative: a stack may be deeper than ours.
  void Walk() {
    uint32_t node = first_child_[0];
    while (node != kNone) {
      Enter(node);
      if (first_child_[node] != kNone) {
        node = first_child_[node];
        continue;
      }
      Leave(node);
      while (next_sibling_[node] == kNone) {
        node = ToIndex(tables_.stack(StackId{node}).parent);
        if (node == 0) return;
        Leave(node);
      }
      node = next_sibling_[node];
    }
  }

  void Enter(uint32_t node) {
    const uint32_t frame = ToIndex(tables_.stack(StackId{node}).frame);
    const uint32_t function = ToIndex(tables_.frame(FrameId{frame}).function);
    functions[function].self += self_[node];
    frames[frame].self += self_[node];
    if (functions_on_path_[function]++ == 0) functions[function].total += total_[node];
    if (frames_on_path_[frame]++ == 0) frames[frame].total += total_[node];
  }

  void Leave(uint32_t node) {
    const uint32_t frame = ToIndex(tables_.stack(StackId{node}).frame);
    --frames_on_path_[frame];
    --functions_on_path_[ToIndex(tables_.frame(FrameId{frame}).function)];
  }

  const Tables& tables_;
  std::vector<Weights> self_;
  std::vector<Weights> total_;
  std::vector<uint32_t> first_child_;
  std::vector<uint32_t> next_sibling_;
  std::vector<uint32_t> functions_on_path_;
  std::vector<uint32_t> frames_on_path_;
};

/// For each function the line with the most self time, else total time, else the first one.
std::vector<uint32_t> HottestLines(const Tables& tables, const std::vector<SelfAndTotal>& frames,
                                   Mode mode) {
  std::vector<uint32_t> best(tables.function_count(), kNone);  // FrameIds
  const auto rank = [&](uint32_t frame) {
    return std::tuple(frames[frame].self.nanoseconds(mode), frames[frame].total.nanoseconds(mode),
                      ~tables.frame(FrameId{frame}).line);
  };
  for (uint32_t i = 0; i < frames.size(); ++i) {
    if (analyze::IsZero(frames[i].total)) continue;
    uint32_t& frame = best[ToIndex(tables.frame(FrameId{i}).function)];
    if (frame == kNone || rank(i) > rank(frame)) frame = i;
  }
  for (uint32_t& frame : best) frame = frame == kNone ? 0 : tables.frame(FrameId{frame}).line;
  return best;
}

void SortRows(const Tables& tables, Mode mode, std::vector<FunctionRow>& rows) {
  const auto text_of = [&](FunctionId id) {
    const Function& f = tables.function(id);
    return std::tuple<std::string_view, std::string_view, uint32_t, FunctionId>(
        tables.text(f.name), tables.text(f.file), f.first_line, id);
  };
  std::sort(rows.begin(), rows.end(), [&](const FunctionRow& a, const FunctionRow& b) {
    const auto times = [mode](const FunctionRow& row) {
      return std::pair(row.self.nanoseconds(mode), row.total.nanoseconds(mode));
    };
    if (times(a) != times(b)) return times(a) > times(b);
    return text_of(a.function) < text_of(b.function);
  });
}

}  // namespace

std::vector<FunctionRow> FunctionTable(const Profile& profile, Mode mode) {
  const Tables& tables = profile.tables();
  const FunctionSums sums(tables, profile.threads);
  const std::vector<uint32_t> lines = HottestLines(tables, sums.frames, mode);
  std::vector<FunctionRow> rows;
  for (uint32_t i = 0; i < sums.functions.size(); ++i) {
    const SelfAndTotal& sum = sums.functions[i];
    if (analyze::IsZero(sum.total)) continue;
    rows.push_back({FunctionId{i}, sum.self, sum.total, lines[i]});
  }
  SortRows(tables, mode, rows);
  return rows;
}

}  // namespace pystrobe
