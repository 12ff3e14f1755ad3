// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace pystrobe::trace {
namespace {

class Writer {
 public:
  Writer(const TraceSession& session, FunctionRef<const FunctionFacts&(Key)> facts)
      : session_(session), facts_(facts) {}

  void Add(const ThreadTrace& thread, const std::string& name) {
    const ThreadIndex index = tables_.AddThread(
        {.tid = static_cast<uint64_t>(thread.tid()), .name = tables_.Intern(name)});
    HashMap<const CallNode*, StackId> stacks;
    Nanoseconds time = session_.rate().ToTime(thread.begin() - session_.begin());
    for (const CallNode& node : thread.tree().nodes()) {
      if (node.parent == nullptr) {
        stacks.emplace(&node, kEmptyStack);
        continue;
      }
      if (node.key == nullptr) continue;
      const StackId stack = tables_.Push(stacks.at(node.parent), FrameOf(node.key));
      stacks.emplace(&node, stack);
      AddSample(node, stack, index, time);
    }
  }

  uint64_t calls() const { return calls_; }
  const Tables& tables() const { return tables_; }
  std::vector<Sample> samples;
  uint64_t wall_ns = 0, cpu_ns = 0;

 private:
  FrameId FrameOf(Key key) {
    const auto known = frames_.find(key);
    if (known != frames_.end()) return known->second;
    const FunctionFacts& facts = facts_(key);
    const FunctionId function = tables_.Intern(Function{.name = tables_.Intern(facts.name),
                                                        .file = tables_.Intern(facts.file),
                                                        .first_line = facts.first_line});
    const FrameId frame = tables_.Intern(Frame{function, facts.first_line});
    frames_.emplace(key, frame);
    return frame;
  }

  // One after the other, as if each had run once: when they did is not kept.
  void AddSample(const CallNode& node, StackId stack, ThreadIndex thread, Nanoseconds& time) {
    const auto wall = static_cast<uint64_t>(session_.rate().ToTime(node.self()).count());
    const auto cpu = static_cast<uint64_t>(session_.rate().ToTime(node.self_cpu()).count());
    time += Nanoseconds(static_cast<int64_t>(wall));
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    uint64_t calls = node.calls;
    for (bool first = true; first || calls > 0; first = false) {
      Sample& sample = samples.emplace_back();
      sample.time_ns = time.count();
      sample.wall_ns = first ? wall : 0;
      sample.cpu_ns = first ? cpu : 0;
      sample.thread = thread;
      sample.stack = stack;
      sample.count = static_cast<uint32_t>(std::min(calls, kMost));
      sample.flags = first && cpu > 0 ? kSampleOnCpu : 0;
      calls -= sample.count;
    }
    calls_ += node.calls;
    wall_ns += wall;
    cpu_ns += cpu;
  }

  const TraceSession& session_;
  FunctionRef<const FunctionFacts&(Key)> facts_;
  Tables tables_;
  HashMap<Key, FrameId> frames_;
  uint64_t calls_ = 0;
};

std::vector<std::string> WhatIsMissing(const TraceSession& session, const std::string& trouble) {
  std::vector<std::string> missing;
  if (!trouble.empty()) missing.push_back(trouble);
  if (const uint64_t refused = session.refused_threads(); refused > 0) {
    missing.push_back(fmt::format("there was no memory to trace {}",
                                  refused == 1 ? "a thread" : fmt::format("{} threads", refused)));
  }
  uint64_t too_deep = 0;
  for (const auto& thread : session.threads()) too_deep += thread->too_deep();
  if (too_deep > 0) {
    missing.push_back(fmt::format("{} calls were deeper than {} and count for none", too_deep,
                                  ThreadTrace::kMostDepth));
  }
  return missing;
}

}  // namespace

Result<void> RecordTrace(const TraceSession& session, Metadata metadata, const SeenBy& seen_by,
                         FunctionRef<const FunctionFacts&(Key)> facts,
                         FunctionRef<std::string(pid_t)> name_of_thread, RecordingSink& sink) {
  Writer writer(session, facts);
  for (const auto& thread : session.threads()) writer.Add(*thread, name_of_thread(thread->tid()));
  const Nanoseconds start = session.rate().TimeAt(session.begin());
  metadata.pause_mode = kByTracing;
  metadata.start_monotonic_ns = start.count();
  metadata.start_unix_ns = (UnixNow() - MonotonicNow() + start).count();
  Quality quality;
  quality.samples = quality.taken = quality.proved = quality.deadlines = writer.calls();
  quality.duration_ns = session.rate().ToTime(session.end() - session.begin()).count();
  const std::vector<std::string> missing = WhatIsMissing(session, seen_by.trouble);
  quality.held_ns = std::llround(static_cast<double>(writer.calls()) * seen_by.ns_per_call);
  quality.cpu_source = seen_by.engine;
  if (!missing.empty()) quality.cpu_source += fmt::format("; {}", fmt::join(missing, "; "));
  quality.lost = missing.size();
  quality.pause_mode = kByTracing;
  quality.thread_ns = writer.wall_ns;
  quality.cpu_ns = writer.cpu_ns;
  quality.complete = true;
  if (auto begun = sink.Begin(metadata); !begun) return begun;
  if (auto done = sink.Append(writer.tables(), writer.samples, quality); !done) return done;
  return sink.Finish(writer.tables(), quality);
}

}  // namespace pystrobe::trace
