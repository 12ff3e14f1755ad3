// SPDX-License-Identifier: Apache-2.0
//
// A recording in memory, for tests: filled by hand or through the RecordingSink interface, read
// through the RecordingSource interface. [one thread at a time]
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/model/recording.h"

namespace pystrobe::testing {

/// A frame as a test writes it down: {"name"}, {"name", 12} or {"name", 12, "file.py"}.
struct FrameSpec {
  std::string_view name;
  uint32_t line = 1;
  std::string_view file = "app.py";
  uint32_t first_line = 1;
  bool is_native = false;
};

inline FrameId MakeFrame(Tables& tables, const FrameSpec& spec) {
  const FunctionId function = tables.Intern(Function{
      tables.Intern(spec.name), tables.Intern(spec.file), spec.first_line, spec.is_native});
  return tables.Intern(Frame{function, spec.line});
}

/// The stack with these frames, root first.
inline StackId MakeStack(Tables& tables, std::initializer_list<FrameSpec> frames) {
  StackId stack = kEmptyStack;
  for (const FrameSpec& frame : frames) stack = tables.Push(stack, MakeFrame(tables, frame));
  return stack;
}

inline ThreadIndex MakeThread(Tables& tables, uint64_t tid, std::string_view name) {
  const StringId id = tables.Intern(name);
  return tables.AddThread({.tid = tid, .interpreter = 0, .name = id});
}

/// Copies every definition that `to` lacks. `to` must hold a prefix of `from`, so that ids agree.
inline void CopyTables(const Tables& from, Tables& to) {
  for (size_t i = to.string_count(); i < from.string_count(); ++i) {
    to.Intern(from.text(StringId{static_cast<uint32_t>(i)}));
  }
  for (size_t i = to.function_count(); i < from.function_count(); ++i) {
    to.Intern(from.function(FunctionId{static_cast<uint32_t>(i)}));
  }
  for (size_t i = to.frame_count(); i < from.frame_count(); ++i) {
    to.Intern(from.frame(FrameId{static_cast<uint32_t>(i)}));
  }
  for (size_t i = to.stack_count(); i < from.stack_count(); ++i) {
    const StackNode& node = from.stack(StackId{static_cast<uint32_t>(i)});
    to.Push(node.parent, node.frame);
  }
  for (size_t i = 0; i < from.thread_count(); ++i) {
    const ThreadIndex index{static_cast<uint32_t>(i)};
    const Thread& thread = from.thread(index);
    if (i >= to.thread_count()) {
      to.AddThread(thread);
    } else if (to.thread(index).name != thread.name) {
      to.RenameThread(index, thread.name);
    }
  }
}

class MemoryRecording final : public TimelineSink, public RecordingSource {
 public:
  Result<void> Begin(const Metadata& metadata) override {
    metadata_ = metadata;
    return {};
  }
  Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                      const Quality& so_far) override {
    CopyTables(tables, tables_);
    samples_.insert(samples_.end(), samples.begin(), samples.end());
    quality_ = so_far;
    return {};
  }
  Result<void> AppendCalls(const Tables& tables, ThreadIndex thread,
                           std::span<const CallEvent> calls) override {
    CopyTables(tables, tables_);
    calls_.push_back({thread, {calls.begin(), calls.end()}});
    return {};
  }
  Result<void> Finish(const Tables& tables, const Quality& quality) override {
    CopyTables(tables, tables_);
    quality_ = quality;
    return {};
  }

  const Metadata& metadata() const override { return metadata_; }
  const Tables& tables() const override { return tables_; }
  const Quality& quality() const override { return quality_; }
  Result<void> ForEachSample(FunctionRef<void(const Sample&)> visit) const override {
    for (const Sample& sample : samples_) visit(sample);
    return {};
  }
  Result<void> ForEachCall(CallVisitor visit) const override {
    for (const Calls& calls : calls_) visit(calls.thread, calls.events);
    return {};
  }
  const GpuRecord* gpu() const override { return gpu_ ? &*gpu_ : nullptr; }
  const RangeRecord* ranges() const override { return ranges_ ? &*ranges_ : nullptr; }

  /// For tests that fill it by hand.
  Metadata& mutable_metadata() { return metadata_; }
  Tables& mutable_tables() { return tables_; }
  Quality& mutable_quality() { return quality_; }
  void Add(const Sample& sample) { samples_.push_back(sample); }
  /// Ids are of mutable_tables().
  void SetGpu(GpuRecord record) { gpu_ = std::move(record); }
  void SetRanges(RangeRecord record) { ranges_ = std::move(record); }
  const std::vector<Sample>& samples() const { return samples_; }
  /// What one thread did, all together.
  std::vector<CallEvent> CallsOf(ThreadIndex thread) const {
    std::vector<CallEvent> all;
    for (const Calls& calls : calls_) {
      if (calls.thread == thread) all.insert(all.end(), calls.events.begin(), calls.events.end());
    }
    return all;
  }

 private:
  Metadata metadata_;
  Tables tables_;
  Quality quality_;
  std::vector<Sample> samples_;
  std::optional<GpuRecord> gpu_;
  std::optional<RangeRecord> ranges_;
  struct Calls {
    ThreadIndex thread;
    std::vector<CallEvent> events;
  };
  std::vector<Calls> calls_;
};

}  // namespace pystrobe::testing
