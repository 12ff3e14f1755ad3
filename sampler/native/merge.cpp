// SPDX-License-Identifier: Apache-2.0
#include "sampler/native/merge.h"

#include <algorithm>
#include <cstddef>

namespace pystrobe::native {
namespace {

// One in so many stacks: more often no function begins that is called.
constexpr uint64_t kRare = 2;

class Merger {
 public:
  Merger(std::span<const CodeKind> native, std::span<const uint8_t> begins_run,
         std::vector<MergedFrame>& merged)
      : native_(native), begins_run_(begins_run), merged_(merged), is_shown_(native.size()) {
    // What the C library does before anything else is to begin the thread.
    bool is_callers = std::ranges::any_of(native, [](CodeKind kind) {
      return kind != CodeKind::kSystem && kind != CodeKind::kStart;
    });
    for (size_t i = native.size(); i-- > 0;) {
      const CodeKind kind = native[i];
      if (kind == CodeKind::kEvaluation || kind == CodeKind::kInterpreter) is_callers = true;
      const bool is_own = kind == CodeKind::kOther || kind == CodeKind::kGreenlet;
      if (is_own) is_callers = false;
      is_shown_[i] = is_own || (kind == CodeKind::kSystem && !is_callers);
    }
  }

  static constexpr size_t kNone = ~size_t{0};

  /// All, the run `without` (0: the innermost one) having no Python frames.
  void AddAll(size_t without) {
    size_t run = 0;
    for (size_t i = 0; i < native_.size(); ++i) {
      if (native_[i] == CodeKind::kEvaluation) {
        if (run++ != without) AddRun();
      } else {
        AddNative(i);
      }
    }
    AddRest();
  }

  /// All of Python between what is below the innermost run and what is not.
  void AddAround() {
    size_t i = 0;
    for (; i < native_.size() && native_[i] != CodeKind::kEvaluation; ++i) AddNative(i);
    AddRest();
    for (; i < native_.size(); ++i) AddNative(i);
  }

 private:
  void AddNative(size_t i) {
    if (is_shown_[i]) merged_.push_back({true, static_cast<uint32_t>(i)});
  }

  void AddRun() {
    while (next_ < begins_run_.size()) {
      const bool is_last = begins_run_[next_] != 0;
      merged_.push_back({false, static_cast<uint32_t>(next_++)});
      if (is_last) return;
    }
  }

  void AddRest() {
    while (next_ < begins_run_.size()) AddRun();
  }

  std::span<const CodeKind> native_;
  std::span<const uint8_t> begins_run_;
  std::vector<MergedFrame>& merged_;
  std::vector<bool> is_shown_;  // by native frame
  size_t next_ = 0;             // Python frame to be added
};

size_t CountRuns(std::span<const CodeKind> native) {
  return static_cast<size_t>(std::ranges::count(native, CodeKind::kEvaluation));
}

// Where a greenlet runs, what is below the functions that began it. A callback of that module, as
// for tracing switches, has fewer runs of the loop below it than the thread has Python frames for.
std::span<const CodeKind> OfGreenlet(std::span<const CodeKind> native, size_t python_runs) {
  size_t runs = 0;
  for (size_t i = 0; i < native.size(); ++i) {
    if (native[i] == CodeKind::kEvaluation) ++runs;
    if (native[i] == CodeKind::kGreenlet && runs > 0 && runs >= python_runs) return native.first(i);
  }
  return native;
}

}  // namespace

MergeResult Merge(std::span<const CodeKind> native, bool is_whole,
                  std::span<const uint8_t> begins_run, RunHistory& history,
                  std::vector<MergedFrame>& merged) {
  merged.clear();
  auto python_runs = static_cast<size_t>(std::ranges::count(begins_run, 1));
  // What was cut for its length has no beginning.
  if (!begins_run.empty() && begins_run.back() == 0) ++python_runs;
  const auto own = OfGreenlet(native, python_runs);
  is_whole |= own.size() < native.size();
  native = own;
  const size_t runs = CountRuns(native);
  const auto fits = is_whole ? MergeResult::kWhole : MergeResult::kCut;
  if (runs == python_runs) {
    ++history.fitting;
    Merger(native, begins_run, merged).AddAll(Merger::kNone);
    return fits;
  }
  if (runs == python_runs + 1) {
    Merger(native, begins_run, merged).AddAll(0);
    if (kRare * uint64_t{history.excess++} < history.fitting) return fits;
    std::vector<MergedFrame> other;
    Merger(native, begins_run, other).AddAll(runs - 1);
    if (merged == other) return fits;
    merged.clear();
  } else if (!is_whole && runs < python_runs) {
    Merger(native, begins_run, merged).AddAll(Merger::kNone);
    return MergeResult::kCut;
  }
  Merger(native, begins_run, merged).AddAround();
  return MergeResult::kUnfit;
}

}  // namespace pystrobe::native
