// SPDX-License-Identifier: Apache-2.0
//
// The Trace Event Format of Chrome's tracing ("Trace Event Format", Duffield and others): one
// complete event ("X") for each call, times in microseconds with the nanoseconds behind the point.
// They come as calls end, threads mixed; viewers sort them. What a GPU did and the ranges that the
// program named come last.
#include <string>
#include <vector>

#include "profiler/analyze/spans.h"
#include "profiler/write/gpu_events.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/json_writer.h"
#include "profiler/write/labels.h"
#include "profiler/write/range_events.h"

namespace pystrobe::write {
namespace {

class TraceEventWriter {
 public:
  TraceEventWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        gpu_(profile, out_),
        ranges_(profile, gpu_.timeline(), out_),
        of_thread_(tables_.thread_count()),
        of_function_(tables_.function_count()) {}

  Result<void> Run() {
    const Metadata& metadata = profile_.recording->metadata();
    out_.Append("{");
    if (!gpu_.empty()) gpu_.WriteHead();
    out_.Append(gpu_.empty() ? "\"displayTimeUnit\":\"ns\"" : "\"displayTimeUnit\":\"ms\"");
    out_.Append(",\"otherData\":{\"origin\":");
    Append(OriginLine(metadata));
    out_.Append(",\"quality\":");
    Append(WholeQualityLine(*profile_.recording));
    if (profile_.part) {
      out_.Append(",\"part\":");
      Append(PartLine(profile_));
    }
    if (!gpu_.empty() && profile_.recording->gpu()->spans_lost > 0) {
      out_.Append(fmt::format(",\"gpu_spans_lost\":{}", profile_.recording->gpu()->spans_lost));
    }
    ranges_.WriteQuality();
    out_.Append("},\n\"traceEvents\":[\n");
    WriteNames(metadata);
    auto read = ForEachSpan(
        *profile_.recording, [this](const Span& span) { WriteSpan(span); }, RangeOf(profile_));
    if (!read) return read;
    ranges_.WriteSlices();
    gpu_.WriteWork();
    out_.Append("\n]}\n");
    return out_.Finish();
  }

 private:
  void Append(std::string_view text) {
    scratch_.clear();
    AppendJsonString(text, scratch_);
    out_.Append(scratch_);
  }

  void WriteNames(const Metadata& metadata) {
    std::vector<uint64_t> named;
    WriteName("process_name", metadata.pid, metadata.pid, Title(metadata, options_));
    for (const ThreadProfile& profile : profile_.threads) {
      const Thread& thread = tables_.thread(profile.thread);
      out_.Append(",\n");
      WriteName("thread_name", metadata.pid, thread.tid, tables_.text(thread.name));
      of_thread_[ToIndex(profile.thread)] =
          fmt::format("\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":", metadata.pid, thread.tid);
      named.push_back(thread.tid);
    }
    if (!gpu_.empty()) gpu_.WriteNames(named);
    for (const uint32_t tid : gpu_.timeline().LaunchingThreads()) named.push_back(tid);
    ranges_.WriteNames(named);
  }

  void WriteName(std::string_view what, int64_t pid, uint64_t tid, std::string_view name) {
    out_.Append(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":)", what,
                            pid, tid));
    Append(name);
    out_.Append("}}");
  }

  void WriteSpan(const Span& span) {
    const std::string& thread = of_thread_[ToIndex(span.thread)];
    if (thread.empty() || !out_.ok()) return;
    const FunctionId function = tables_.frame(tables_.stack(span.stack).frame).function;
    out_.Append(",\n{\"cat\":\"python");
    out_.Append(thread);
    out_.Append(Microseconds(span.begin_ns));
    out_.Append(",\"dur\":");
    out_.Append(Microseconds(span.end_ns - span.begin_ns));
    out_.Append(OfFunction(function));
  }

  // The rest of an event, which is the same for each call of a function.
  const std::string& OfFunction(FunctionId id) {
    std::string& text = of_function_[ToIndex(id)];
    if (!text.empty()) return text;
    const Function& function = tables_.function(id);
    text = ",\"name\":";
    AppendJsonString(FunctionName(function, tables_), text);
    text += ",\"args\":{\"file\":";
    AppendJsonString(tables_.text(function.file), text);
    if (function.first_line != 0) text += fmt::format(",\"line\":{}", function.first_line);
    text += "}}";
    return text;
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  GpuEvents gpu_;
  RangeEvents ranges_;
  std::vector<std::string> of_thread_;    // by ThreadIndex; empty: it is not in the profile
  std::vector<std::string> of_function_;  // by FunctionId
  std::string scratch_;
};

}  // namespace

Result<void> WriteTraceEvents(const Profile& profile, const WriteOptions& options, Output& output) {
  return TraceEventWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
