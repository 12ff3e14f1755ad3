// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/spans.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pystrobe {
namespace {

// What a thread has open, and which of it has been shown.
class OpenCalls {
 public:
  using Visitor = FunctionRef<void(const Span&, bool begins)>;

  OpenCalls(ThreadIndex thread, const Tables& tables, const TimeRange& range)
      : thread_(thread), tables_(tables), range_(range), is_in_(range.since_ns <= 0) {}

  void Go(const CallEvent& event, Visitor visit) {
    if (is_over_) return;
    if (!is_in_ && event.time_ns > range_.since_ns) ShowOpen(visit);
    if (event.time_ns > range_.until_ns) {
      is_over_ = true;
      last_ns_ = range_.until_ns;
      EndAll(visit);
      return;
    }
    last_ns_ = event.time_ns;
    // Ids fall on the way to the root.
    if (event.stack > stack_) {
      Begin(event.stack, visit);
    } else {
      End(visit);
    }
  }

  /// `goes_on`: what is open was, at the end of the range, though no more is told of it.
  void EndRange(bool goes_on, Visitor visit) {
    if (goes_on && !is_over_) {
      if (!is_in_) ShowOpen(visit);
      is_over_ = true;
      last_ns_ = range_.until_ns;
    }
    EndAll(visit);
  }

 private:
  void EndAll(Visitor visit) {
    while (stack_ != kEmptyStack) End(visit);
  }
  void Begin(StackId stack, Visitor visit) {
    stack_ = stack;
    begins_.push_back(last_ns_);
    if (is_in_) visit({thread_, stack, last_ns_, last_ns_}, true);
  }
  void End(Visitor visit) {
    if (is_in_) {
      const bool began_before = range_.since_ns > 0 && begins_.back() <= range_.since_ns;
      const int64_t begin_ns = began_before ? range_.since_ns : begins_.back();
      visit({thread_, stack_, begin_ns, last_ns_, began_before, is_over_}, false);
    }
    begins_.pop_back();
    stack_ = tables_.stack(stack_).parent;
  }
  // The range begins: so do, in it, the calls that are open, from the outermost on.
  void ShowOpen(Visitor visit) {
    is_in_ = true;
    std::vector<StackId> open;
    for (StackId at = stack_; at != kEmptyStack; at = tables_.stack(at).parent) open.push_back(at);
    const int64_t since_ns = range_.since_ns;
    for (auto stack = open.rbegin(); stack != open.rend(); ++stack) {
      visit({thread_, *stack, since_ns, since_ns, true}, true);
    }
  }

  ThreadIndex thread_;
  const Tables& tables_;
  TimeRange range_;
  bool is_in_;
  bool is_over_ = false;
  StackId stack_ = kEmptyStack;
  int64_t last_ns_ = 0;
  std::vector<int64_t> begins_;
};

}  // namespace

TimeRange RangeOf(const Profile& profile) {
  return profile.part ? TimeRange{profile.since_ns, profile.until_ns} : TimeRange{};
}

Result<void> ForEachEdge(const RecordingSource& recording, OpenCalls::Visitor visit,
                         const TimeRange& range) {
  const Tables& tables = recording.tables();
  std::vector<OpenCalls> threads;
  threads.reserve(tables.thread_count());
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    threads.emplace_back(ThreadIndex{i}, tables, range);
  }
  auto read = recording.ForEachCall([&](ThreadIndex thread, std::span<const CallEvent> calls) {
    for (const CallEvent& call : calls) threads[ToIndex(thread)].Go(call, visit);
  });
  if (!read) return read;
  // Of a part where the timeline is whole, which ends before the calls do.
  const bool goes_on =
      !recording.quality().timeline_failure.empty() && range.until_ns != TimeRange{}.until_ns;
  for (OpenCalls& thread : threads) thread.EndRange(goes_on, visit);
  return {};
}

Result<void> ForEachSpan(const RecordingSource& recording, FunctionRef<void(const Span&)> visit,
                         const TimeRange& range) {
  const auto visit_end = [&visit](const Span& span, bool begins) {
    if (!begins) visit(span);
  };
  return ForEachEdge(recording, visit_end, range);
}

Result<void> ForEachSampleOfCalls(const RecordingSource& recording, const TimeRange& range,
                                  FunctionRef<void(const Sample&)> visit,
                                  OpenCalls::Visitor visit_edge) {
  const Tables& tables = recording.tables();
  std::vector<int64_t> before(tables.thread_count());  // of each thread, its last edge
  const auto visit_both = [&](const Span& span, bool begins) {
    visit_edge(span, begins);
    const int64_t now = begins ? span.begin_ns : span.end_ns;
    const StackId left = begins ? tables.stack(span.stack).parent : span.stack;
    const int64_t passed = now - std::exchange(before[ToIndex(span.thread)], now);
    if (left != kEmptyStack && passed > 0) {
      visit({.time_ns = now,
             .wall_ns = static_cast<uint64_t>(passed),
             .thread = span.thread,
             .stack = left,
             .count = 0});
    }
    if (begins && !span.began_before) {
      visit({.time_ns = now, .thread = span.thread, .stack = span.stack});
    }
  };
  return ForEachEdge(recording, visit_both, range);
}

}  // namespace pystrobe
