// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "profiler/analyze/profile.h"
#include "profiler/analyze/stack_sums.h"
#include "profiler/analyze/text_order.h"

namespace pystrobe {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

struct SelfAndTotal {
  Weights self;
  Weights total;
};

/// Calls `enter` for each stack but the empty one, then the same for all that stand on it, then
/// `leave`.
template <typename Enter, typename Leave>
void WalkStacks(const Tables& tables, const Enter& enter, const Leave& leave) {
  const uint32_t count = static_cast<uint32_t>(tables.stack_count());
  std::vector<uint32_t> first_child(count, kNone);
  std::vector<uint32_t> next_sibling(count, kNone);
  const auto parent_of = [&](uint32_t stack) {
    return ToIndex(tables.stack(StackId{stack}).parent);
  };
  for (uint32_t i = count; i-- > 1;) {
    next_sibling[i] = std::exchange(first_child[parent_of(i)], i);
  }
  uint32_t stack = first_child[0];
  while (stack != kNone) {
    enter(stack);
    if (first_child[stack] != kNone) {
      stack = first_child[stack];
      continue;
    }
    leave(stack);
    while (next_sibling[stack] == kNone) {
      stack = parent_of(stack);
      if (stack == 0) return;
      leave(stack);
    }
    stack = next_sibling[stack];
  }
}

/// Adds each stack to its function and to its frame. An inclusive weight is added only where the
/// function (or frame) is not already on the path to the root: that is what counts recursion once.
class FunctionSums {
 public:
  FunctionSums(const Tables& tables, std::span<const ThreadProfile> threads)
      : functions(tables.function_count()), frames(tables.frame_count()), tables_(tables) {
    AddSelf(threads);
    AddTotals(threads);
  }

  std::vector<SelfAndTotal> functions;  ///< by FunctionId
  std::vector<SelfAndTotal> frames;     ///< by FrameId

 private:
  FrameId FrameOf(uint32_t stack) const { return tables_.stack(StackId{stack}).frame; }
  uint32_t FunctionOf(uint32_t stack) const {
    return ToIndex(tables_.frame(FrameOf(stack)).function);
  }

  void AddSelf(std::span<const ThreadProfile> threads) {
    for (const ThreadProfile& thread : threads) {
      for (const StackWeight& entry : thread.stacks) {
        if (entry.stack == kEmptyStack) continue;
        functions[FunctionOf(ToIndex(entry.stack))].self += entry.self;
        frames[ToIndex(FrameOf(ToIndex(entry.stack)))].self += entry.self;
      }
    }
  }

  void AddTotals(std::span<const ThreadProfile> threads) {
    const Outermost outermost = FindOutermost();
    std::vector<Weights> total = analyze::SelfByStack(tables_, threads);
    analyze::AddChildrenToParents(tables_, total);
    for (uint32_t i = 1; i < total.size(); ++i) {
      if (outermost.of_function[i]) functions[FunctionOf(i)].total += total[i];
      if (outermost.of_frame[i]) frames[ToIndex(FrameOf(i))].total += total[i];
    }
  }

  /// By stack: whether no stack it stands on has the same function, the same frame on top.
  struct Outermost {
    std::vector<bool> of_function;
    std::vector<bool> of_frame;
  };

  /// Walks the stack tree once, depth first. Iterative: a stack may be deeper than ours.
  Outermost FindOutermost() const {
    const size_t count = tables_.stack_count();
    Outermost outermost{std::vector<bool>(count), std::vector<bool>(count)};
    std::vector<uint32_t> functions_on_path(tables_.function_count(), 0);
    std::vector<uint32_t> frames_on_path(tables_.frame_count(), 0);
    const auto enter = [&](uint32_t stack) {
      outermost.of_function[stack] = functions_on_path[FunctionOf(stack)]++ == 0;
      outermost.of_frame[stack] = frames_on_path[ToIndex(FrameOf(stack))]++ == 0;
    };
    const auto leave = [&](uint32_t stack) {
      --functions_on_path[FunctionOf(stack)];
      --frames_on_path[ToIndex(FrameOf(stack))];
    };
    WalkStacks(tables_, enter, leave);
    return outermost;
  }

  const Tables& tables_;
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
  const analyze::TextOrder order(tables);
  std::sort(rows.begin(), rows.end(), [&](const FunctionRow& a, const FunctionRow& b) {
    const auto times = [mode](const FunctionRow& row) {
      return std::pair(row.self.nanoseconds(mode), row.total.nanoseconds(mode));
    };
    if (times(a) != times(b)) return times(a) > times(b);
    return order.IsBefore(a.function, b.function);
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
