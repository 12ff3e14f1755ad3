// SPDX-License-Identifier: Apache-2.0
//
// tests/golden/strobe holds a file of each version of the format, and of each that got new fields,
// with the values it must be read as, for ever. When the format changes, a new pair is added; the
// old ones stay as they are.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>

#include "profiler/store/strobe.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/range_example.h"
#include "tests/cpp/support/recording_text.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using testing::ToText;

constexpr std::array<std::string_view, 12> kGoldenFiles = {
    "v1", "v1.1", "v2", "v2.1", "v2.2", "v2.3", "v2.4", "v2.5", "v2.6", "v2.7", "v2.8", "v2.9"};
constexpr std::string_view kNewest = kGoldenFiles.back();

std::string GoldenPath(std::string_view name, std::string_view extension) {
  return fmt::format("{}/strobe/{}.{}", PYSTROBE_GOLDEN_DIR, name, extension);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Four seconds with a bit of everything that the format knows.
struct GoldenRecording {
  Result<void> WriteTo(StrobeWriter& sink) {
    if (auto done = sink.Begin(MakeMetadata()); !done) return done;
    main_ = MakeThread(tables_, 4242, "MainThread");
    sink.Expect({.last_ns = 0, .period_ns = 50'000'000, .state = 42});
    for (int second = 0; second < 4; ++second) {
      if (second == 1) worker_ = MakeThread(tables_, 4243, "");
      if (second == 2) tables_.RenameThread(worker_, tables_.Intern("worker-δ"));
      if (second == 2) {
        sink.Expect(
            {.last_ns = 2'345'678'901, .period_ns = 20'000'000, .state = 0xfedcba9876543210});
      }
      TakeSecond(second);
      quality_.samples += samples_.size();
      quality_.deadlines += 21;
      quality_.taken += 20;
      quality_.proved += 19;
      quality_.marked += 1;
      quality_.duration_ns += 1'000'000'321;
      quality_.held_ns += 98'765;
      quality_.own_cpu_ns += 4'321'000;
      quality_.achieved_rate_hz = 19.9 + second;
      quality_.pause_mode = second < 2 ? "preempt" : "ptrace";
      quality_.thread_ns += 1'900'000'000;
      quality_.unseen_ns += second == 0 ? 50'000'000 : 0;
      if (second == 3) quality_.limited_ns = 250'000'123;
      if (second == 3) quality_.cpu_ns = 3'600'000'000;
      if (second == 3) quality_.unseen_cpu_ns = 40'000'000;
      if (second == 3) quality_.native_cut = 3;
      if (second == 3) quality_.native_unfit = 1;
      if (second == 3) quality_.left_out = 5;
      HoldOften(second);
      if (auto done = sink.Append(tables_, samples_, quality_); !done) return done;
      if (auto done = AppendCalls(second, sink); !done) return done;
      if (auto done = AppendGpu(sink); !done) return done;
      if (auto done = AppendRanges(second, sink); !done) return done;
    }
    quality_.timeline_failure = "writing a.strobe: No space left on device";
    quality_.timeline_end_ns = 3'999'999'999;
    quality_.uncounted = 123'456;
    quality_.complete = true;
    return sink.Finish(tables_, quality_);
  }

 private:
  static Metadata MakeMetadata() {
    Metadata metadata;
    metadata.pid = 4242;
    metadata.command = {"python3", "-m", "zażółć", ""};
    metadata.executable = "/usr/bin/python3.13";
    metadata.python_version = "3.13.0";
    metadata.host = "example";
    metadata.pystrobe_version = "0.1.0";
    metadata.pause_mode = "preempt";
    metadata.start_unix_ns = 1'750'000'000'123'456'789;
    metadata.start_monotonic_ns = 987'654'321'012;
    metadata.wanted_rate_hz = 20;
    metadata.max_overhead = 0.01;
    metadata.cpu_count = 16;
    metadata.native = true;
    metadata.timeline = true;
    metadata.gpu_failure = "there is no CUDA driver";
    return metadata;
  }

  // More of what was there, longer and shorter than that, and once the longest there is.
  void HoldOften(int second) {
    constexpr std::array<uint64_t, 4> kHeldNs = {4'321, 4'322, 98'765, 12};
    for (int i = 0; i <= second; ++i) quality_.held_each.Add(kHeldNs[static_cast<size_t>(i)]);
    if (second == 3) quality_.held_each.Add(~uint64_t{0});
  }

  void TakeSecond(int second) {
    samples_.clear();
    quality_.cpu_source = "schedstat";
    quality_.final_rate_hz = 20;
    for (int i = 0; i < 20; ++i) {
      const int64_t wall = 50'000'000 + (i % 7 - 3) * 1'234'567;
      time_ns_ += wall;
      Sample sample{.time_ns = time_ns_,
                    .wall_ns = static_cast<uint64_t>(wall),
                    .cpu_ns = static_cast<uint64_t>(wall - 12'345),
                    .thread = main_,
                    .stack = StackOf(second * 20 + i),
                    .flags = kSampleGil | kSampleOnCpu};
      if (i % 9 == 8) sample.flags = kSampleMarked;
      if (i % 9 == 8) sample.cpu_ns = 777;
      if (i % 9 == 4) sample.flags |= kSampleKernel;
      samples_.push_back(sample);
    }
    if (second == 0) return;
    samples_.push_back(
        {.time_ns = time_ns_,
         .wall_ns = 900'000'000,
         .thread = worker_,
         .stack = MakeStack(tables_, {{"run", 7, "pool.py"}, {"wait", 300, "/l/q.py"}}),
         .count = 18,
         .flags = kSampleIdle});
  }

  // Again, another and back; a long time between two; none at all.
  Result<void> AppendCalls(int second, TimelineSink& sink) {
    const int64_t at = second * 1'000'000'000LL;
    const StackId outer = Push(kEmptyStack, {"<module>", 1});
    const StackId first = Push(outer, {"load", 5, "load.py", 5});
    const StackId second_one = Push(outer, {"save", 9, "save.py", 9});
    const std::vector<CallEvent> calls = {{at, outer},          {at + 40, first},
                                          {at + 300, outer},    {at + 300, first},
                                          {at + 90'000, outer}, {at + 90'001, second_one},
                                          {at + 95'000, outer}, {at + 999'999'999, kEmptyStack}};
    if (auto done = sink.AppendCalls(tables_, main_, calls); !done || second == 0) return done;
    return sink.AppendCalls(tables_, worker_, std::span(calls).first(2 * (second % 2)));
  }

  // Of a stack that samples have too, and others; more of it each time.
  Result<void> AppendGpu(StrobeWriter& sink) {
    gpu_ = testing::MakeGpuExample(gpu_tables_);
    gpu_.kernels[1].cluster = {2, 1, 1};
    gpu_.kernels[1].dynamic_shared = 100'000;
    gpu_.sums[2].stack = MakeStack(
        gpu_tables_, {{"<module>", 1}, {"main", 14, "app.py", 9}, {"fib", 11, "fib.py", 3}});
    gpu_.sums[2].count += ++gpu_appended_;
    gpu_.quality.graph_launches = 5;
    gpu_.quality.failed = 1;
    gpu_.quality.captured = 7;
    gpu_.quality.of_graphs = 8;
    gpu_.quality.launches_only = true;
    gpu_.quality.unmatched = 2;
    gpu_.quality.dropped = 3;
    gpu_.quality.overflowed = 4;
    testing::AddGpuSpans(gpu_, 987'654'321'012, 4242);
    gpu_.spans_lost = 6;
    return sink.AppendGpu(gpu_tables_, gpu_);
  }

  // Once, and once more with more of it.
  Result<void> AppendRanges(int second, StrobeWriter& sink) {
    if (second % 2 == 0) return {};
    RangeRecord ranges = testing::MakeRangeExample(gpu_tables_, 987'654'321'012, 4242);
    ranges.ranges[0].count += static_cast<uint64_t>(second);
    ranges.spans_lost = 7;
    ranges.overflowed = 2;
    return sink.AppendRanges(gpu_tables_, ranges);
  }

  StackId StackOf(int step) {
    if (step % 11 == 10) return kEmptyStack;
    const auto line = static_cast<uint32_t>(step % 5 + 10);
    if (step % 4 == 0) return MakeStack(tables_, {{"<module>", 1}, {"main", line}});
    StackId stack = MakeStack(tables_, {{"<module>", 1}, {"main", 14, "app.py", 9}});
    if (step % 10 == 9) return Push(stack, {"deflate", 0, "/usr/lib/libz.so.1", 0, true});
    if (step % 10 == 7) return Push(stack, {"std::sort(int*, int*)", 7, "sort.h", 0, true});
    for (int depth = 0; depth < step % 13; ++depth) stack = Push(stack, {"fib", line, "fib.py", 3});
    return stack;
  }

  StackId Push(StackId stack, const testing::FrameSpec& frame) {
    return tables_.Push(stack, testing::MakeFrame(tables_, frame));
  }

  Tables tables_;
  Quality quality_;
  ThreadIndex main_{};
  ThreadIndex worker_{};
  int64_t time_ns_ = 0;
  std::vector<Sample> samples_;
  Tables gpu_tables_;
  GpuRecord gpu_;
  uint64_t gpu_appended_ = 0;
};

class Golden : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Golden, ReadsAsItAlwaysDid) {
  const auto file = StrobeFile::Open(GoldenPath(GetParam(), "strobe"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_EQ(ToText(**file), ReadFile(GoldenPath(GetParam(), "txt")));
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(kGoldenFiles));

TEST(GoldenRecording, IsWhatTheNewestGoldenFileHolds) {
  const auto file = testing::OpenStrobe(testing::ToStrobe(GoldenRecording{}));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(ToText(**file), ReadFile(GoldenPath(kNewest, "txt")));
}

/// Makes the newest pair: run with --gtest_also_run_disabled_tests.
TEST(GoldenRecording, DISABLED_WriteTheNewestFiles) {
  const std::string bytes = testing::ToStrobe(GoldenRecording{});
  std::ofstream(GoldenPath(kNewest, "strobe"), std::ios::binary) << bytes;
  std::ofstream(GoldenPath(kNewest, "txt")) << ToText(**testing::OpenStrobe(bytes));
}

}  // namespace
}  // namespace pystrobe::store
