// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/write/example_recordings.h"

#include <fmt/format.h>

#include <array>
#include <random>
#include <string>
#include <utility>

#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/range_example.h"

namespace pystrobe::testing {
namespace {

using namespace std::string_view_literals;

constexpr int64_t kMs = 1'000'000;

Metadata ExampleMetadata() {
  return {.pid = 4242,
          .command = {"python3", "shop.py", "--port", "8000"},
          .executable = "/usr/bin/python3.13",
          .python_version = "3.13.0",
          .host = "example",
          .pystrobe_version = "0.1.0",
          .pause_mode = "preempt",
          .start_unix_ns = 1'700'000'000'000'000'000,
          .start_monotonic_ns = 5'000'000'000,
          .wanted_rate_hz = 1000,
          .max_overhead = 0,
          .cpu_count = 2};
}

Quality QualityOf(const MemoryRecording& recording, int64_t duration_ns) {
  const bool has_calls = HasCalls(recording.metadata());
  uint64_t taken = has_calls ? 0 : recording.samples().size();
  for (const Sample& sample : recording.samples()) taken += has_calls ? sample.count : 0;
  DurationHistogram held_each;
  if (!has_calls) held_each.AddTo(DurationHistogram::BucketOf(3000), taken);
  return {.deadlines = taken,
          .samples = taken,
          .taken = taken,
          .proved = taken,
          .duration_ns = duration_ns,
          .held_ns = static_cast<int64_t>(taken) * 5000,
          .run_delay_ns = static_cast<int64_t>(taken) * 7000,
          .own_cpu_ns = duration_ns / 50,
          .achieved_rate_hz = duration_ns == 0 ? 0
                                               : 1e9 * static_cast<double>(taken) /
                                                     static_cast<double>(duration_ns),
          .final_rate_hz = 1000,
          .complete = true,
          .cpu_source = has_calls ? "sys.monitoring" : "schedstat",
          .held_each = held_each};
}

/// A sample of one millisecond on the CPU, ending at `end_ms`.
Sample BusySample(ThreadIndex thread, int64_t end_ms, StackId stack) {
  return {.time_ns = end_ms * kMs,
          .wall_ns = kMs,
          .cpu_ns = kMs,
          .thread = thread,
          .stack = stack,
          .flags = kSampleGil | kSampleOnCpu};
}

/// A wait of `length_ms`, one run-length entry.
Sample WaitSample(ThreadIndex thread, int64_t end_ms, StackId stack, uint32_t length_ms) {
  return {.time_ns = end_ms * kMs,
          .wall_ns = uint64_t{length_ms} * kMs,
          .thread = thread,
          .stack = stack,
          .count = length_ms,
          .flags = kSampleIdle};
}

void FillShop(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  const ThreadIndex worker = MakeThread(tables, 4243, "worker");
  const ThreadIndex unnamed = MakeThread(tables, 4250, "");
  const FrameSpec module{"<module>", 40, "/app/shop.py", 1};
  const FrameSpec serve{"main", 33, "/app/shop.py", 30};
  const StackId self = MakeStack(tables, {module, {"main", 31, "/app/shop.py", 30}});
  const StackId encode =
      MakeStack(tables, {module, serve, {"Json.encode", 12, "/app/json.py", 10}});
  const StackId encode_next =
      MakeStack(tables, {module, serve, {"Json.encode", 14, "/app/json.py", 10}});
  const StackId read = MakeStack(tables, {module, serve, {"read", 7, "/app/socket.py", 5}});
  const StackId work = MakeStack(
      tables, {{"Thread.run", 99, "/lib/threading.py", 90}, {"crunch", 3, "/app/w.py", 2}});
  const StackId idle = MakeStack(tables, {{"Thread.run", 99, "/lib/threading.py", 90}});
  for (int64_t ms = 1; ms <= 100; ++ms) recording.Add(BusySample(main, ms, self));
  recording.Add(WaitSample(main, 400, read, 300));
  for (int64_t ms = 401; ms <= 1000; ++ms) {
    recording.Add(BusySample(main, ms, ms % 3 == 0 ? encode_next : encode));
    if (ms <= 500) continue;
    Sample sample = BusySample(worker, ms, work);
    sample.cpu_ns = kMs / 4;
    sample.flags = kSampleOnCpu;
    recording.Add(sample);
  }
  recording.Add(WaitSample(unnamed, 1000, idle, 1000));
}

void FillGpuAlone(MemoryRecording& recording) {
  recording.mutable_metadata().pause_mode = kOfGpu;
  recording.SetGpu(MakeGpuExample(recording.mutable_tables()));
}

void FillGpu(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  GpuRecord gpu = MakeGpuExample(tables);
  const int64_t start = recording.metadata().start_monotonic_ns;
  for (GpuGap& gap : gpu.gaps) {
    gap.begin_ns += start - 900'000'000;
    gap.end_ns += start - 900'000'000;
  }
  recording.SetGpu(std::move(gpu));
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  const StackId step = MakeStack(tables, {{"<module>", 30}, {"train", 12}, {"step", 5}});
  for (int64_t ms = 1; ms <= 1000; ++ms) recording.Add(BusySample(main, ms, step));
}

void FillOdd(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 1, "Main;\n\"Thread\" \xF0\x9F\x8E\x89");
  const ThreadIndex other = MakeThread(tables, 2, "\xFF\xFE");
  int64_t ms = 0;
  for (const std::string_view name : OddNames()) {
    recording.Add(BusySample(main, ++ms, MakeStack(tables, {{"root"}, {name, 2, name}})));
    recording.Add(BusySample(other, ms, MakeStack(tables, {{name, 0, "odd.py", 0}})));
  }
  recording.Add(BusySample(main, ++ms, kEmptyStack));
}

void FillIdle(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 1, "MainThread");
  recording.Add({.thread = main, .stack = MakeStack(tables, {{"wait"}}), .count = 0});
}

void FillDeep(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 1, "MainThread");
  StackId stack = kEmptyStack;
  for (int depth = 0; depth < 1000; ++depth) {
    stack =
        tables.Push(stack, MakeFrame(tables, {fmt::format("level_{}", depth), 5, "deep.py", 4}));
  }
  for (int64_t ms = 1; ms <= 50; ++ms) recording.Add(BusySample(main, ms, stack));
}

// A random walk in a tree of functions, as a program that goes in and out of calls.
void FillLarge(MemoryRecording& recording) {
  constexpr int kFunctions = 300;
  constexpr size_t kDistinctStacks = 500;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  std::minstd_rand random(1);
  const auto below = [&random](size_t limit) { return random() % limit; };
  std::vector<StackId> stacks;
  while (stacks.size() < kDistinctStacks) {
    StackId stack = stacks.empty() ? kEmptyStack : stacks[below(stacks.size())];
    const size_t more = 1 + below(6);
    if (tables.FramesOf(stack).size() + more > 40) continue;
    for (size_t i = 0; i < more; ++i) {
      const size_t function = below(kFunctions);
      const std::string name = fmt::format("Class{}.method_{}", function / 10, function);
      const std::string file =
          fmt::format("/usr/lib/python3.13/package/module_{}.py", function / 10);
      const auto first_line = static_cast<uint32_t>(10 * function + 1);
      const auto line = first_line + static_cast<uint32_t>(below(9));
      stack = tables.Push(stack, MakeFrame(tables, {name, line, file, first_line}));
    }
    stacks.push_back(stack);
  }
  for (int64_t ms = 1; ms <= 10'000; ++ms) {
    recording.Add(BusySample(main, ms, stacks[below(stacks.size())]));
  }
}

void FillWide(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 1, "MainThread");
  const StackId root = MakeStack(tables, {{"root", 1, "wide.py", 1}, {"fan", 2, "wide.py", 2}});
  for (uint32_t i = 0; i < 100'000; ++i) {
    const std::string middle = fmt::format("middle_{}", i / 1000);
    const StackId parent =
        tables.Push(root, MakeFrame(tables, {middle, i % 1000 + 1, "wide.py", 1}));
    const StackId stack = tables.Push(parent, MakeFrame(tables, {"leaf", 9, "wide.py", 8}));
    recording.Add(BusySample(main, i + 1, stack));
  }
}

void FillGaps(MemoryRecording& recording) {
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  const ThreadIndex unsampled = MakeThread(tables, 0, "threads not sampled");
  const StackId serve = MakeStack(tables, {{"serve", 5, "/app/serve.py", 3}});
  recording.Add({.time_ns = 20 * kMs,
                 .wall_ns = 20 * kMs,
                 .thread = main,
                 .count = 20,
                 .flags = kSampleUnseen});
  for (int64_t ms = 21; ms <= 100; ++ms) {
    recording.Add(BusySample(main, ms, ms <= 80 ? serve : kEmptyStack));
  }
  recording.Add({.time_ns = 100 * kMs,
                 .cpu_ns = 120 * kMs,
                 .thread = unsampled,
                 .count = 0,
                 .flags = kSampleUnseen | kSampleOnCpu});
}

void FillSplit(MemoryRecording& recording) {
  recording.mutable_metadata().native = true;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  const FrameSpec module{"<module>", 20, "/app/load.py", 1};
  const FrameSpec inflate{"inflate", 0, "/lib/libz.so.1", 0, true};
  const FrameSpec line_7{"load", 7, "/app/load.py", 5}, line_9{"load", 9, "/app/load.py", 5};
  int64_t now_ms = 0;
  const auto add = [&](int64_t ms, std::initializer_list<FrameSpec> frames, uint8_t flags = 0) {
    now_ms += ms;
    recording.Add({.time_ns = now_ms * kMs,
                   .wall_ns = static_cast<uint64_t>(ms * kMs),
                   .cpu_ns = static_cast<uint64_t>(ms * kMs),
                   .thread = main,
                   .stack = MakeStack(tables, frames),
                   .count = static_cast<uint32_t>(ms),
                   .flags = static_cast<uint8_t>(flags | kSampleOnCpu)});
  };
  add(10, {module});
  add(10, {module, line_9});
  add(10, {module, line_9}, kSampleKernel);
  add(50, {module, line_7, inflate});
  add(20, {module, line_7, inflate}, kSampleKernel);
}

void FillCalls(MemoryRecording& recording) {
  recording.mutable_metadata().pause_mode = kByTracing;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main_thread = MakeThread(tables, 4242, "MainThread");
  const ThreadIndex worker = MakeThread(tables, 4243, "worker");
  const FrameSpec main{"main", 30, "/app/shop.py", 30}, step{"step", 7, "/app/step.py", 7};
  const FrameSpec check{"check", 20, "/app/step.py", 20}, run{"run", 3, "/app/w.py", 3};
  const auto add = [&](ThreadIndex thread, std::initializer_list<FrameSpec> frames, uint32_t calls,
                       int64_t ms) {
    recording.Add({.time_ns = ms * kMs,
                   .wall_ns = static_cast<uint64_t>(ms * kMs),
                   .cpu_ns = static_cast<uint64_t>(ms * kMs / 2),
                   .thread = thread,
                   .stack = MakeStack(tables, frames),
                   .count = calls,
                   .flags = static_cast<uint8_t>(ms > 0 ? kSampleOnCpu : 0)});
  };
  add(main_thread, {main}, 1, 10);
  add(main_thread, {main, step}, 10'000, 60);
  add(main_thread, {main, step, check}, 2, 0);
  add(worker, {run}, 0, 10);  // begun before
  add(worker, {run, step}, 3, 20);
}

// The calls around the launches are in the file, too.
void FillGpuTimeline(MemoryRecording& recording) {
  Metadata& metadata = recording.mutable_metadata();
  metadata.pause_mode = kByTracing;
  metadata.timeline = true;
  Tables& tables = recording.mutable_tables();
  const ThreadIndex main = MakeThread(tables, 4242, "MainThread");
  const FrameSpec train{"train", 12, "/app/train.py", 10}, step{"step", 5, "/app/train.py", 4};
  const StackId outer = MakeStack(tables, {train});
  const StackId inner = MakeStack(tables, {train, step});
  const std::vector<CallEvent> calls = {{0, outer},         {40'000, inner},
                                        {70'000, outer},    {2'040'000, inner},
                                        {2'060'000, outer}, {4'000'000, kEmptyStack}};
  recording.Add({.time_ns = 3'950'000, .wall_ns = 3'950'000, .thread = main, .stack = outer});
  recording.Add(
      {.time_ns = 4'000'000, .wall_ns = 50'000, .thread = main, .stack = inner, .count = 2});
  static_cast<void>(recording.AppendCalls(tables, main, calls));
  GpuRecord gpu = MakeGpuExample(tables);
  AddGpuSpans(gpu, metadata.start_monotonic_ns, 4242);
  recording.SetGpu(std::move(gpu));
}

// No calls: the ranges are on the thread's own row.
void FillRanges(MemoryRecording& recording) {
  Metadata& metadata = recording.mutable_metadata();
  metadata.pause_mode = kOfGpu;
  Tables& tables = recording.mutable_tables();
  GpuRecord gpu = MakeGpuExample(tables);
  AddGpuSpans(gpu, metadata.start_monotonic_ns, 4242);
  recording.SetGpu(std::move(gpu));
  recording.SetRanges(MakeRangeExample(tables, metadata.start_monotonic_ns, 4242));
}

void FillRangesAlone(MemoryRecording& recording) {
  FillShop(recording);
  RangeRecord ranges =
      MakeRangeExample(recording.mutable_tables(), recording.metadata().start_monotonic_ns, 4242);
  ranges.streams.clear();
  recording.SetRanges(std::move(ranges));
}

void FillRangesAndCalls(MemoryRecording& recording) {
  FillGpuTimeline(recording);
  recording.SetRanges(
      MakeRangeExample(recording.mutable_tables(), recording.metadata().start_monotonic_ns, 4242));
}

struct Example {
  std::string_view name;
  void (*fill)(MemoryRecording&);
  int64_t duration_ms;
};

constexpr std::array kExamples = {
    Example{"shop", FillShop, 1000},
    Example{"odd", FillOdd, 20},
    Example{"empty", [](MemoryRecording&) {}, 0},
    Example{"idle", FillIdle, 0},
    Example{"deep", FillDeep, 50},
    Example{"large", FillLarge, 10'000},
    Example{"wide", FillWide, 100'000},
    Example{"gaps", FillGaps, 100},
    Example{"split", FillSplit, 100},
    Example{"calls", FillCalls, 100},
    Example{"gpu", FillGpu, 1000},
    Example{"gpu alone", FillGpuAlone, 0},
    Example{"gpu-timeline", FillGpuTimeline, 4},
    Example{"ranges", FillRanges, 4},
    Example{"ranges-alone", FillRangesAlone, 1000},
    Example{"ranges-and-calls", FillRangesAndCalls, 4},
};

}  // namespace

const std::vector<std::string_view>& ExampleNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Example& example : kExamples) all.push_back(example.name);
    return all;
  }();
  return names;
}

bool FillExample(std::string_view name, MemoryRecording& recording) {
  for (const Example& example : kExamples) {
    if (example.name != name) continue;
    recording.mutable_metadata() = ExampleMetadata();
    example.fill(recording);
    recording.mutable_quality() = QualityOf(recording, example.duration_ms * kMs);
    return true;
  }
  return false;
}

const std::vector<std::string_view>& OddNames() {
  static const std::vector<std::string_view> names = {
      ""sv,
      "plain"sv,
      "quote\"and\\backslash"sv,
      "semi;colon"sv,
      "line\nfeed\r\ttab"sv,
      "paragraph\xE2\x80\xA9separator"sv,
      "party_\xF0\x9F\x8E\x89"sv,
      "\xD0\xB8\xD0\xBC\xD1\x8F"sv,
      "nul\0inside"sv,
      "bell\x07"
      "delete\x7F"sv,
      "broken\xC3"sv,
      "\xED\xA0\x80surrogate"sv,
      "overlong\xC0\x80"sv,
      "</script><!--"sv,
      "ends in a number 12"sv,
      "(app.py:1)"sv,
      "outer.<locals>.<lambda>"sv,
  };
  return names;
}

}  // namespace pystrobe::testing
