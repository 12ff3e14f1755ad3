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
  /// `tables`: may have some of it already.
  Writer(const TraceSession& session, FunctionRef<const FunctionFacts&(Key)> facts,
         FunctionTables& tables)
      : session_(session), facts_(facts), tables_(tables) {}

  void Add(const ThreadTrace& thread, ThreadIndex index) {
    HashMap<const CallNode*, StackId> stacks;
    Nanoseconds time = session_.rate().ToTime(thread.begin() - session_.begin());
    for (const CallNode& node : thread.tree().nodes()) {
      if (node.parent == nullptr) {
        stacks.emplace(&node, kEmptyStack);
        continue;
      }
      if (node.key == nullptr) continue;
      const StackId stack = tables_.Push(stacks.at(node.parent), node.key, facts_);
      stacks.emplace(&node, stack);
      AddSample(node, stack, index, time);
    }
  }

  uint64_t calls() const { return calls_; }
  std::vector<Sample> samples;
  uint64_t wall_ns = 0, cpu_ns = 0;

 private:
  // One after the other, as if each had run once: when they did is not kept.
  void AddSample(const CallNode& node, StackId stack, ThreadIndex thread, Nanoseconds& time) {
    const auto wall = static_cast<uint64_t>(session_.rate().ToTime(node.self()).count());
    const Ticks of_cpu = session_.has_cpu_time() ? node.self_cpu() : 0;
    const auto cpu = static_cast<uint64_t>(session_.rate().ToTime(of_cpu).count());
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
  FunctionTables& tables_;
  uint64_t calls_ = 0;
};

std::string ByWhichClock(const TraceSession& session) {
  if (!session.has_cpu_time()) return ", by elapsed time alone";
  if (SwitchFlag::Available()) return "";
  return ", CPU time read every 50 us at most: there is no rseq to tell when a thread has lost its "
         "CPU";
}

// That it waited is no cost of its calls, and no CPU time.
std::string WaitedFor(const CallStream& timeline) {
  constexpr Nanoseconds kWorthSaying = std::chrono::milliseconds(1);
  if (timeline.waited() < kWorthSaying) return "";
  return fmt::format("; it waited {:.3g} s for its timeline to be written",
                     static_cast<double>(timeline.waited().count()) / 1e9);
}

std::string WhatFitsNothing(std::span<const std::string> patterns) {
  constexpr size_t kMostNamed = 3;
  if (patterns.empty()) return "";
  const size_t named = std::min(patterns.size(), kMostNamed);
  const size_t more = patterns.size() - named;
  return fmt::format("; no function that was seen fits '{}'{}",
                     fmt::join(patterns.first(named), "' or '"),
                     more == 0 ? "" : fmt::format(" or {} more of the patterns", more));
}

// What stands behind the numbers.
std::string SeenHow(const TraceSession& session, const SeenBy& seen_by, uint64_t calls) {
  const std::string_view left_out = !seen_by.filtered ? ""
                                    : calls == 0 ? "; nothing was called that the patterns leave in"
                                                 : "; what the patterns leave out is its caller's";
  return fmt::format("{}{}{}{}", seen_by.engine, ByWhichClock(session), left_out,
                     WhatFitsNothing(seen_by.unused_patterns));
}

}  // namespace

std::vector<std::string> WhatIsMissing(const TraceSession& session, const std::string& trouble) {
  std::vector<std::string> missing;
  if (!trouble.empty()) missing.push_back(trouble);
  if (const uint64_t refused = session.refused_threads(); refused > 0) {
    missing.push_back(fmt::format("there was no memory to trace {}",
                                  refused == 1 ? "a thread" : fmt::format("{} threads", refused)));
  }
  if (session.lacked_memory()) {
    missing.push_back("there was no memory for some calls: neither counts nor times are whole");
  }
  const uint64_t too_deep = session.max_depth() == 0 ? session.left_out() : 0;
  if (too_deep > 0) {
    missing.push_back(fmt::format("{} calls were deeper than {} and count for none", too_deep,
                                  ThreadTrace::kMostDepth));
  }
  if (const uint64_t unplaced = session.unplaced(); unplaced > 0) {
    missing.push_back(fmt::format(
        "{} calls came by other ways than the first {}, which is all that are kept, and count for "
        "none: what they took is their caller's (a lower --max-depth makes fewer ways)",
        unplaced, TraceSession::kMostNodes));
  }
  return missing;
}

Metadata MetadataOf(const TraceSession& session, Metadata metadata) {
  const Nanoseconds start = session.rate().TimeAt(session.begin());
  metadata.pause_mode = kByTracing;
  metadata.max_depth = static_cast<uint32_t>(session.max_depth());
  metadata.start_monotonic_ns = start.count();
  metadata.start_unix_ns = (UnixNow() - MonotonicNow() + start).count();
  return metadata;
}

Result<void> RecordTrace(const TraceSession& session, const SeenBy& seen_by,
                         FunctionRef<const FunctionFacts&(Key)> facts,
                         FunctionRef<std::string(pid_t)> name_of_thread, RecordingSink& sink,
                         CallStream* timeline) {
  FunctionTables own_tables;
  FunctionTables& tables = timeline == nullptr ? own_tables : timeline->tables();
  Tables& definitions = tables.tables();
  Writer writer(session, facts, tables);
  for (const auto& thread : session.threads()) {
    const StringId name = definitions.Intern(name_of_thread(thread->tid()));
    auto index = timeline == nullptr ? std::nullopt : timeline->IndexOf(thread->log());
    if (!index) index = definitions.AddThread({.tid = static_cast<uint64_t>(thread->tid())});
    definitions.RenameThread(*index, name);
    writer.Add(*thread, *index);
  }
  Quality quality;
  quality.samples = quality.taken = quality.proved = quality.deadlines = writer.calls();
  quality.duration_ns = session.rate().ToTime(session.end() - session.begin()).count();
  const std::vector<std::string> missing = WhatIsMissing(session, seen_by.trouble);
  if (session.max_depth() > 0) quality.left_out = session.left_out();
  quality.uncounted = session.uncounted() + session.unplaced();
  quality.held_ns =
      std::llround(static_cast<double>(writer.calls() + session.left_out() + quality.uncounted) *
                   seen_by.ns_per_call);
  if (timeline != nullptr) quality.own_cpu_ns = timeline->cpu().count();
  quality.cpu_source = SeenHow(session, seen_by, writer.calls());
  if (timeline != nullptr) quality.cpu_source += WaitedFor(*timeline);
  if (!missing.empty()) quality.cpu_source += fmt::format("; {}", fmt::join(missing, "; "));
  quality.lost = missing.size();
  quality.pause_mode = kByTracing;
  quality.thread_ns = writer.wall_ns;
  quality.cpu_ns = writer.cpu_ns;
  quality.limited_ns = 0;
  quality.complete = true;
  if (auto done = sink.Append(definitions, writer.samples, quality); !done) return done;
  return sink.Finish(definitions, quality);
}

}  // namespace pystrobe::trace
