// SPDX-License-Identifier: Apache-2.0
//
// Makes up recordings from a seed: the same seed gives the same calls of the sink.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "profiler/model/recording.h"

namespace pystrobe::testing {

struct RandomRecordingOptions {
  uint32_t threads = 5;
  uint32_t appends = 6;
  uint32_t samples_per_append = 300;
  uint32_t functions = 60;
  uint32_t max_depth = 40;
  /// One name of so many is up to so long.
  uint32_t long_name_of = 40;
  uint32_t longest_name = 3000;
  /// Now and then a sample with values at the limits, a gap, a jump.
  bool extremes = true;
};

/// Begin, the Appends and Finish of one recording; ends at the sink's first error.
class RandomRecording {
 public:
  RandomRecording(uint32_t seed, const RandomRecordingOptions& options)
      : options_(options), random_(seed) {}

  Result<void> WriteTo(RecordingSink& sink) {
    if (auto done = sink.Begin(MakeMetadata()); !done) return done;
    for (uint32_t i = 0; i < options_.appends; ++i) {
      for (uint64_t series = Below(3); series > 0; --series) sink.Expect(MakeSeries());
      const std::vector<Sample> samples = MakeSamples();
      Grow(quality_);
      if (auto done = sink.Append(tables_, samples, quality_); !done) return done;
    }
    Grow(quality_);
    quality_.complete = true;
    return sink.Finish(tables_, quality_);
  }

 private:
  struct Clock {
    int64_t time_ns = 0;
    StackId stack = kEmptyStack;
  };

  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  std::string MakeName() {
    static constexpr const char* kParts[] = {"load", "Парсер",     "<lambda>", "visit",
                                             "日本", "\xff",       "",         " ",
                                             "a;b",  "Engine.run", "\n",       "💡"};
    std::string name = kParts[Below(std::size(kParts))];
    if (OneIn(2)) name += std::to_string(Below(100000));
    if (OneIn(options_.long_name_of)) name += std::string(Below(options_.longest_name), 'x');
    return name;
  }

  Metadata MakeMetadata() {
    Metadata metadata;
    metadata.pid = static_cast<int64_t>(Below(4'000'000));
    for (uint64_t i = Below(5); i > 0; --i) metadata.command.push_back(MakeName());
    metadata.executable = "/usr/bin/" + MakeName();
    metadata.python_version = "3.13.0";
    metadata.host = MakeName();
    metadata.pystrobe_version = "0.1.0";
    metadata.pause_mode = "preempt";
    metadata.start_unix_ns = 1'700'000'000'123'456'789;
    metadata.start_monotonic_ns = static_cast<int64_t>(Below(1'000'000'000'000));
    metadata.wanted_rate_hz = 1000.0 / 3;
    metadata.max_overhead = 0.01;
    metadata.cpu_count = 8;
    metadata.native = OneIn(2);
    metadata.max_depth = OneIn(2) ? 0 : static_cast<uint32_t>(Below(1000));
    metadata.clock = static_cast<CallClock>(Below(3));
    if (OneIn(2)) metadata.gpu_failure = "there is no CUDA driver";
    return metadata;
  }

  /// Now and then one that no sampler would draw.
  DeadlineSeries MakeSeries() {
    DeadlineSeries series{.last_ns = static_cast<int64_t>(Below(1'000'000'000)),
                          .period_ns = static_cast<int64_t>(1 + Below(3'000'000)),
                          .state = random_()};
    if (options_.extremes && OneIn(5)) series.last_ns = static_cast<int64_t>(random_() << 32);
    if (options_.extremes && OneIn(5)) series.period_ns = static_cast<int64_t>(random_() << 20);
    return series;
  }

  void Grow(Quality& q) {
    for (uint64_t* field : {&q.deadlines, &q.samples, &q.taken, &q.proved, &q.marked, &q.incomplete,
                            &q.late, &q.lost, &q.retries, &q.unresolved, &q.reused_code}) {
      *field += Below(1000);
    }
    q.duration_ns += 1'000'000'000 + static_cast<int64_t>(Below(1000));
    q.held_ns += static_cast<int64_t>(Below(1'000'000));
    q.run_delay_ns += static_cast<int64_t>(Below(1'000'000));
    q.own_cpu_ns += static_cast<int64_t>(Below(1'000'000));
    q.achieved_rate_hz = static_cast<double>(Below(1'000'000)) / 997;
    q.final_rate_hz = 1000;
    q.cpu_source = OneIn(2) ? "schedstat" : "stat";
    q.pause_mode = OneIn(2) ? "preempt" : "ptrace";
    q.thread_ns += Below(1'000'000'000);
    q.unseen_ns += Below(1'000'000);
    q.limited_ns = q.limited_ns.value_or(0) + static_cast<int64_t>(Below(1'000'000));
    q.cpu_ns += Below(1'000'000'000);
    q.unseen_cpu_ns += Below(1'000'000);
    q.native_cut += Below(100);
    q.left_out += Below(100'000);
    q.native_unfit += Below(100);
    for (int i = 0; i < 5; ++i) {
      q.held_each.AddTo(Below(DurationHistogram::kMostBuckets), Below(1000));
    }
  }

  FrameId MakeFrame() {
    if (tables_.frame_count() > 0 && !OneIn(4)) {
      return FrameId{static_cast<uint32_t>(Below(tables_.frame_count()))};
    }
    FunctionId function;
    if (tables_.function_count() < options_.functions) {
      const StringId name = tables_.Intern(MakeName());
      const StringId file = tables_.Intern(OneIn(3) ? MakeName() : "/srv/app/main.py");
      const auto line = static_cast<uint32_t>(OneIn(20) ? Below(uint64_t{1} << 32) : Below(2000));
      function = tables_.Intern(Function{name, file, line, OneIn(3)});
    } else {
      function = FunctionId{static_cast<uint32_t>(Below(tables_.function_count()))};
    }
    const uint32_t first = tables_.function(function).first_line;
    const auto line =
        static_cast<uint32_t>(OneIn(20) ? Below(uint64_t{1} << 32) : first + Below(50));
    return tables_.Intern(Frame{function, line});
  }

  StackId MakeStack(StackId from) {
    if (OneIn(50)) return kEmptyStack;
    if (OneIn(4)) return StackId{static_cast<uint32_t>(Below(tables_.stack_count()))};
    for (uint64_t pops = Below(6); pops > 0 && from != kEmptyStack; --pops) {
      from = tables_.stack(from).parent;
    }
    const uint64_t depth = OneIn(100) ? options_.max_depth * 10 : options_.max_depth / 8 + 1;
    for (uint64_t pushes = Below(depth); pushes > 0; --pushes) {
      from = tables_.Push(from, MakeFrame());
    }
    return from;
  }

  void ChangeThreads() {
    if (tables_.thread_count() == 0 || (tables_.thread_count() < options_.threads && OneIn(4))) {
      const StringId name = OneIn(3) ? kEmptyString : tables_.Intern(MakeName());
      tables_.AddThread({.tid = Below(uint64_t{1} << 40), .interpreter = Below(3), .name = name});
      clocks_.push_back({.time_ns = static_cast<int64_t>(Below(1'000'000'000))});
    }
    if (OneIn(100)) {
      const ThreadIndex thread{static_cast<uint32_t>(Below(tables_.thread_count()))};
      tables_.RenameThread(thread, tables_.Intern(MakeName()));
    }
  }

  std::vector<Sample> MakeSamples() {
    std::vector<Sample> samples;
    for (uint32_t i = 0; i < options_.samples_per_append; ++i) {
      ChangeThreads();
      const auto thread = static_cast<uint32_t>(Below(clocks_.size()));
      Clock& clock = clocks_[thread];
      if (OneIn(3)) clock.stack = MakeStack(clock.stack);
      const uint64_t wall = Below(1'000'000);
      clock.time_ns += static_cast<int64_t>(wall);
      Sample sample{.time_ns = clock.time_ns,
                    .wall_ns = wall,
                    .cpu_ns = OneIn(3) ? 0 : wall - Below(wall / 2 + 1),
                    .thread = ThreadIndex{thread},
                    .stack = clock.stack,
                    .count = 1,
                    .flags = static_cast<uint8_t>(OneIn(20) ? Below(256) : 3)};
      if (OneIn(30)) sample.count = static_cast<uint32_t>(Below(100000));
      if (options_.extremes && OneIn(50)) MakeExtreme(sample, clock);
      samples.push_back(sample);
    }
    return samples;
  }

  void MakeExtreme(Sample& sample, Clock& clock) {
    switch (Below(7)) {
      case 0:
        sample.wall_ns = Below(uint64_t{1} << 50);
        break;
      case 1:
        sample.wall_ns = 0;
        break;
      case 2:
        sample.cpu_ns = Below(uint64_t{1} << 50);
        break;
      case 3:
        sample.count = 0xffffffff;
        break;
      case 4:
        clock.time_ns += static_cast<int64_t>(Below(1'000'000'000'000));
        sample.time_ns = clock.time_ns;
        break;
      case 5:
        sample.time_ns = -static_cast<int64_t>(Below(10'000));  // before the start
        break;
      default:
        sample.wall_ns += Below(3000);  // not quite the time since the sample before
        break;
    }
  }

  RandomRecordingOptions options_;
  std::mt19937 random_;
  Tables tables_;
  Quality quality_;
  std::vector<Clock> clocks_;
};

}  // namespace pystrobe::testing
