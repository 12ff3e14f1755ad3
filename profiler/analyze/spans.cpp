// SPDX-License-Identifier: Apache-2.0
#include "profiler/analyze/spans.h"

#include <utility>
#include <vector>

namespace pystrobe {
namespace {

// What a thread has open.
class OpenCalls {
 public:
  using Visitor = FunctionRef<void(const Span&, bool begins)>;

  OpenCalls(ThreadIndex thread, const Tables& tables) : thread_(thread), tables_(tables) {}

  void Go(const CallEvent& event, Visitor visit) {
    last_ns_ = event.time_ns;
    // Ids fall on the way to the root.
    if (event.stack > stack_) {
      Begin(event.stack, visit);
    } else {
      End(visit);
    }
  }

  void EndAll(Visitor visit) {
    while (stack_ != kEmptyStack) End(visit);
  }

 private:
  void Begin(StackId stack, Visitor visit) {
    stack_ = stack;
    begins_.push_back(last_ns_);
    visit({thread_, stack, last_ns_, last_ns_}, true);
  }
  void End(Visitor visit) {
    visit({thread_, stack_, begins_.back(), last_ns_}, false);
    begins_.pop_back();
    stack_ = tables_.stack(stack_).parent;
  }

  ThreadIndex thread_;
  const Tables& tables_;
  StackId stack_ = kEmptyStack;
  int64_t last_ns_ = 0;
  std::vector<int64_t> begins_;
};

}  // namespace

Result<void> ForEachEdge(const RecordingSource& recording, OpenCalls::Visitor visit) {
  const Tables& tables = recording.tables();
  std::vector<OpenCalls> threads;
  for (uint32_t i = 0; i < tables.thread_count(); ++i) threads.emplace_back(ThreadIndex{i}, tables);
  auto read = recording.ForEachCall([&](ThreadIndex thread, std::span<const CallEvent> calls) {
    for (const CallEvent& call : calls) threads[ToIndex(thread)].Go(call, visit);
  });
  if (!read) return read;
  for (OpenCalls& thread : threads) thread.EndAll(visit);
  return {};
}

Result<void> ForEachSpan(const RecordingSource& recording, FunctionRef<void(const Span&)> visit) {
  return ForEachEdge(recording, [&visit](const Span& span, bool begins) {
    if (!begins) visit(span);
  });
}

Result<void> ForEachSampleOfCalls(const RecordingSource& recording,
                                  FunctionRef<void(const Sample&)> visit) {
  const Tables& tables = recording.tables();
  std::vector<int64_t> before(tables.thread_count());  // of each thread, its last edge
  return ForEachEdge(recording, [&](const Span& span, bool begins) {
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
    if (begins) visit({.time_ns = now, .thread = span.thread, .stack = span.stack});
  });
}

}  // namespace pystrobe
