// SPDX-License-Identifier: Apache-2.0
//
// speedscope's own JSON (github.com/jlfwong/speedscope, src/lib/file-format-spec.ts): one `sampled`
// profile for each thread, in order of time, weights in nanoseconds of the chosen mode. The format
// knows frames but not functions, so a frame here is a function with the line of its `def`: with
// executing lines a function would fall apart into many bars.
//
// The recording has the threads mixed; the file wants them one after the other, each as two arrays.
// So one pass counts runs, then each further pass gathers as many threads as fit in memory, and a
// thread too large for that is streamed: a pass for its stacks, a pass for its weights.
//
// A timeline becomes `evented` profiles of elapsed time: each call opens and closes. They are
// gathered and streamed the same way. Of a GPU's work it is not known when it ran: each stack has
// all its time in one place.
#include "profiler/write/speedscope.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "profiler/analyze/spans.h"
#include "profiler/base/wrapping.h"
#include "profiler/write/function_stacks.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/json_writer.h"
#include "profiler/write/labels.h"
#include "profiler/write/stack_limit.h"

namespace pystrobe::write {
namespace {

constexpr uint64_t kRunsInMemory = 1'000'000;
constexpr size_t kNoSlot = std::numeric_limits<size_t>::max();

// Neighbouring samples of one thread with the same functions on the stack.
struct RunOfSamples {
  int64_t start_ns = 0;  // of its first sample
  uint64_t weight_ns = 0;
  uint32_t stack = 0;  // as FunctionStacks numbers it
};

// A call of a timeline begins or ends.
struct Edge {
  int64_t at_ns = 0;
  uint32_t frame = 0;
  bool begins = false;
};

// What of a thread is known before its runs are written. A slot is a place in Profile::threads.
struct ThreadSummary {
  uint64_t runs = 0;  // of a timeline: edges
  uint64_t weight_ns = 0;
  int64_t start_ns = 0;
};

uint64_t WeightOf(const Sample& sample, Mode mode) {
  if (mode == Mode::kCpu) return sample.cpu_ns;
  if (mode == Mode::kGil && (sample.flags & kSampleGil) == 0) return 0;
  return sample.wall_ns;
}

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        json_(out_),
        stacks_(tables_),
        slot_of_thread_(tables_.thread_count(), kNoSlot),
        summaries_(profile.threads.size()) {
    for (size_t slot = 0; slot < profile.threads.size(); ++slot) {
      slot_of_thread_[ToIndex(profile.threads[slot].thread)] = slot;
    }
  }

  Result<void> Run(uint64_t runs_in_memory) {
    const bool has_each_call =
        profile_.recording->metadata().timeline && options_.mode == Mode::kWall;
    if (!has_each_call) {
      if (auto counted = CountRuns(); !counted) return counted;
      auto possible = CheckFramesListed(Format::kSpeedscope, frames_listed_);
      if (!possible) return possible;
    }
    json_.BeginObject();
    WriteHead();
    WriteFrames();
    json_.NewLine().Key("profiles").BeginArray();
    const auto written = has_each_call ? WriteCalls(runs_in_memory) : WriteThreads(runs_in_memory);
    if (!written) return written;
    json_.EndArray().EndObject();
    out_.Append('\n');
    return out_.Finish();
  }

 private:
  // One pass over the recording: visit(slot, run) for the threads in [first, last), each thread's
  // runs in order of time, threads mixed.
  template <typename Visit>
  Result<void> ForEachRun(size_t first, size_t last, Visit visit) const {
    if (options_.mode == Mode::kGpu) {
      for (size_t slot = first; slot < last; ++slot) VisitSums(slot, visit);
      return {};
    }
    std::vector<RunOfSamples> open(last - first);
    auto read = profile_.recording->ForEachSample([&](const Sample& whole) {
      const size_t slot = slot_of_thread_[ToIndex(whole.thread)];
      if (slot < first || slot >= last) return;
      const std::optional<Sample> part = PartOf(whole, profile_.since_ns, profile_.until_ns);
      if (!part) return;
      const Sample& sample = *part;
      const uint64_t weight_ns = WeightOf(sample, options_.mode);
      if (weight_ns == 0) return;
      RunOfSamples& run = open[slot - first];
      const uint32_t stack = stacks_.Of(sample.stack);
      if (run.weight_ns != 0 && run.stack == stack) {
        run.weight_ns += weight_ns;
        return;
      }
      if (run.weight_ns != 0) visit(slot, run);
      const auto wall_ns = static_cast<int64_t>(sample.wall_ns);
      run = {WrappingSubtract(sample.time_ns, wall_ns), weight_ns, stack};
    });
    for (size_t slot = first; slot < last; ++slot) {
      if (open[slot - first].weight_ns != 0) visit(slot, open[slot - first]);
    }
    return read;
  }

  template <typename Visit>
  void VisitSums(size_t slot, Visit visit) const {
    for (const StackWeight& entry : profile_.threads[slot].stacks) {
      const uint64_t weight_ns = entry.self.nanoseconds(options_.mode);
      if (weight_ns != 0) visit(slot, RunOfSamples{0, weight_ns, stacks_.Of(entry.stack)});
    }
  }

  Result<void> CountRuns() {
    return ForEachRun(0, summaries_.size(), [this](size_t slot, const RunOfSamples& run) {
      ThreadSummary& summary = summaries_[slot];
      if (summary.runs == 0) summary.start_ns = std::max<int64_t>(run.start_ns, 0);
      ++summary.runs;
      summary.weight_ns += run.weight_ns;
      frames_listed_ += stacks_.DepthOf(run.stack);
    });
  }

  void WriteHead() {
    const Metadata& metadata = profile_.recording->metadata();
    json_.NewLine().Field("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.NewLine().Field("exporter", "pystrobe@" + metadata.pystrobe_version);
    json_.NewLine().Field("name", Title(metadata, options_));
    json_.NewLine().Field("activeProfileIndex", 0);
    // Not the format's; viewers pass over it.
    json_.NewLine().Key("pystrobe").BeginObject();
    json_.Field("mode", ModeName(options_.mode)).Field("origin", OriginLine(metadata));
    if (profile_.part) json_.Field("part", PartLine(profile_));
    json_.Field("quality", WholeQualityLine(*profile_.recording)).EndObject();
  }

  void WriteFrames() {
    std::vector<bool> marked(stacks_.size());
    for (const ThreadProfile& thread : profile_.threads) {
      for (const StackWeight& entry : thread.stacks) marked[stacks_.Of(entry.stack)] = true;
    }
    json_.NewLine().Key("shared").BeginObject().Key("frames").BeginArray();
    frame_of_function_.resize(tables_.function_count());
    uint32_t next_frame = 0;
    for (const FunctionId id : stacks_.FunctionsIn(std::move(marked))) {
      frame_of_function_[ToIndex(id)] = next_frame++;
      const Function& function = tables_.function(id);
      json_.NewLine().BeginObject().Field("name", FunctionName(function, tables_));
      json_.Field("file", tables_.text(function.file));
      if (function.first_line != 0) json_.Field("line", function.first_line);
      json_.EndObject();
    }
    json_.EndArray().EndObject();
  }

  // As many threads from this slot on as fit in memory, but one at least.
  struct Batch {
    size_t end = 0;
    uint64_t runs = 0;
  };
  Batch BatchFrom(size_t first, uint64_t runs_in_memory) const {
    Batch batch{first + 1, summaries_[first].runs};
    for (; batch.end < summaries_.size(); ++batch.end) {
      const uint64_t runs = summaries_[batch.end].runs;
      if (batch.runs + runs > runs_in_memory) break;
      batch.runs += runs;
    }
    return batch;
  }

  Result<void> WriteThreads(uint64_t runs_in_memory) {
    uint64_t written_runs = 0;
    for (size_t first = 0; first < summaries_.size() && out_.ok();) {
      const Batch batch = BatchFrom(first, runs_in_memory);
      auto written =
          batch.runs > runs_in_memory ? StreamThread(first) : WriteBatch(first, batch.end);
      if (!written) return written;
      written_runs += batch.runs;
      first = batch.end;
    }
    if (written_runs == 0) WriteNothing();
    return {};
  }

  Result<void> WriteCalls(uint64_t edges_in_memory) {
    if (summaries_.empty()) WriteNothing();
    auto counted = ForEachEdgeIn(0, summaries_.size(),
                                 [this](size_t slot, const Edge&) { ++summaries_[slot].runs; });
    if (!counted) return counted;
    for (size_t first = 0; first < summaries_.size() && out_.ok();) {
      const Batch batch = BatchFrom(first, edges_in_memory);
      auto written =
          batch.runs > edges_in_memory ? StreamCalls(first) : WriteCallsOf(first, batch.end);
      if (!written) return written;
      first = batch.end;
    }
    return {};
  }

  // One pass over the calls of the threads in [first, last): visit(slot, edge), threads mixed.
  template <typename Visit>
  Result<void> ForEachEdgeIn(size_t first, size_t last, Visit visit) const {
    const auto visit_span = [&](const Span& span, bool begins) {
      const size_t slot = slot_of_thread_[ToIndex(span.thread)];
      if (slot < first || slot >= last) return;
      const FunctionId function = tables_.frame(tables_.stack(span.stack).frame).function;
      const uint32_t frame = frame_of_function_[ToIndex(function)];
      visit(slot, Edge{begins ? span.begin_ns : span.end_ns, frame, begins});
    };
    return ForEachEdge(*profile_.recording, visit_span, RangeOf(profile_));
  }

  Result<void> WriteCallsOf(size_t first, size_t last) {
    std::vector<std::vector<Edge>> edges(last - first);
    for (size_t slot = first; slot < last; ++slot) {
      edges[slot - first].reserve(summaries_[slot].runs);
    }
    auto read = ForEachEdgeIn(
        first, last, [&](size_t slot, const Edge& edge) { edges[slot - first].push_back(edge); });
    if (!read) return read;
    for (size_t slot = first; slot < last && out_.ok(); ++slot) {
      BeginCalls(slot);
      for (const Edge& edge : edges[slot - first]) WriteEdge(edge);
      json_.EndArray().EndObject();
    }
    return {};
  }

  Result<void> StreamCalls(size_t slot) {
    BeginCalls(slot);
    auto read = ForEachEdgeIn(slot, slot + 1, [this](size_t, const Edge& edge) {
      if (out_.ok()) WriteEdge(edge);
    });
    json_.EndArray().EndObject();
    return read;
  }

  void BeginCalls(size_t slot) {
    const ThreadIndex thread = profile_.threads[slot].thread;
    json_.NewLine().BeginObject().Field("type", "evented");
    json_.Field("name", ThreadLabel(tables_.thread(thread), tables_));
    json_.Field("unit", "nanoseconds");
    json_.Field("startValue", std::max<int64_t>(profile_.since_ns, 0));
    json_.Field("endValue", std::max<int64_t>(profile_.until_ns, 0));
    json_.NewLine().Key("events").BeginArray();
  }

  void WriteEdge(const Edge& edge) {
    json_.BeginObject().Field("type", edge.begins ? "O" : "C");
    json_.Field("frame", edge.frame).Field("at", edge.at_ns).EndObject();
  }

  // The page wants at least one profile to show.
  void WriteNothing() {
    BeginProfile("nothing recorded", ThreadSummary{});
    json_.Key("samples").BeginArray().EndArray();
    json_.Key("weights").BeginArray().EndArray().EndObject();
  }

  Result<void> WriteBatch(size_t first, size_t last) {
    std::vector<std::vector<RunOfSamples>> runs(last - first);
    for (size_t slot = first; slot < last; ++slot)
      runs[slot - first].reserve(summaries_[slot].runs);
    auto read = ForEachRun(first, last, [&](size_t slot, const RunOfSamples& run) {
      runs[slot - first].push_back(run);
    });
    if (!read) return read;
    for (size_t slot = first; slot < last && out_.ok(); ++slot) {
      if (summaries_[slot].runs == 0) continue;  // no time in this mode
      BeginThread(slot);
      json_.NewLine().Key("samples").BeginArray();
      for (const RunOfSamples& run : runs[slot - first]) WriteStack(run);
      json_.EndArray().NewLine().Key("weights").BeginArray();
      for (const RunOfSamples& run : runs[slot - first]) json_.Value(run.weight_ns);
      json_.EndArray().EndObject();
    }
    return {};
  }

  Result<void> StreamThread(size_t slot) {
    BeginThread(slot);
    json_.NewLine().Key("samples").BeginArray();
    auto read =
        ForEachRun(slot, slot + 1, [this](size_t, const RunOfSamples& run) { WriteStack(run); });
    if (!read) return read;
    json_.EndArray().NewLine().Key("weights").BeginArray();
    read = ForEachRun(slot, slot + 1,
                      [this](size_t, const RunOfSamples& run) { json_.Value(run.weight_ns); });
    json_.EndArray().EndObject();
    return read;
  }

  void BeginThread(size_t slot) {
    BeginProfile(ThreadLabel(tables_.thread(profile_.threads[slot].thread), tables_),
                 summaries_[slot]);
  }

  // In wall mode the values are times since the start of the recording. In the others time that
  // does not count is left out, so they count from 0.
  void BeginProfile(std::string_view name, const ThreadSummary& summary) {
    const uint64_t start =
        options_.mode == Mode::kWall ? static_cast<uint64_t>(summary.start_ns) : 0;
    json_.NewLine().BeginObject().Field("type", "sampled").Field("name", name);
    json_.Field("unit", "nanoseconds");
    json_.Field("startValue", start).Field("endValue", start + summary.weight_ns);
  }

  void WriteStack(const RunOfSamples& run) {
    if (!out_.ok()) return;
    json_.BeginArray();
    for (const FunctionId id : stacks_.FunctionsOf(run.stack)) {
      json_.Value(frame_of_function_[ToIndex(id)]);
    }
    json_.EndArray();
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  JsonWriter json_;
  FunctionStacks stacks_;
  std::vector<size_t> slot_of_thread_;    // by ThreadIndex
  std::vector<ThreadSummary> summaries_;  // by slot
  uint64_t frames_listed_ = 0;
  std::vector<uint32_t> frame_of_function_;  // by FunctionId: place in shared.frames
};

}  // namespace

Result<void> WriteSpeedscopeWithin(uint64_t runs_in_memory, const Profile& profile,
                                   const WriteOptions& options, Output& output) {
  return SpeedscopeWriter(profile, options, output).Run(runs_in_memory);
}

Result<void> WriteSpeedscope(const Profile& profile, const WriteOptions& options, Output& output) {
  return WriteSpeedscopeWithin(kRunsInMemory, profile, options, output);
}

}  // namespace pystrobe::write
