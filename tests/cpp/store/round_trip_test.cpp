// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "profiler/store/strobe.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/random_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using testing::MakeStack;
using testing::MakeThread;
using testing::MemoryRecording;
using testing::OpenStrobe;
using testing::RandomRecording;
using testing::RandomRecordingOptions;
using testing::ReadSamples;
using testing::ToStrobe;

void ExpectSameTables(const Tables& got, const Tables& wanted) {
  ASSERT_EQ(got.string_count(), wanted.string_count());
  for (uint32_t i = 0; i < wanted.string_count(); ++i) {
    ASSERT_EQ(got.text(StringId{i}), wanted.text(StringId{i}));
  }
  ASSERT_EQ(got.function_count(), wanted.function_count());
  for (uint32_t i = 0; i < wanted.function_count(); ++i) {
    ASSERT_EQ(got.function(FunctionId{i}), wanted.function(FunctionId{i}));
  }
  ASSERT_EQ(got.frame_count(), wanted.frame_count());
  for (uint32_t i = 0; i < wanted.frame_count(); ++i) {
    ASSERT_EQ(got.frame(FrameId{i}), wanted.frame(FrameId{i}));
  }
  ASSERT_EQ(got.stack_count(), wanted.stack_count());
  for (uint32_t i = 0; i < wanted.stack_count(); ++i) {
    ASSERT_EQ(got.stack(StackId{i}), wanted.stack(StackId{i}));
  }
  ASSERT_EQ(got.thread_count(), wanted.thread_count());
  for (uint32_t i = 0; i < wanted.thread_count(); ++i) {
    ASSERT_EQ(got.thread(ThreadIndex{i}), wanted.thread(ThreadIndex{i}));
  }
}

std::map<ThreadIndex, std::vector<Sample>> ByThread(const std::vector<Sample>& samples) {
  std::map<ThreadIndex, std::vector<Sample>> by_thread;
  for (const Sample& sample : samples) by_thread[sample.thread].push_back(sample);
  return by_thread;
}

/// Samples are the same but for rounding, and the sums of a thread never differ by 1 us.
void ExpectSameSamples(const std::vector<Sample>& got, const std::vector<Sample>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  const auto got_threads = ByThread(got);
  for (const auto& [thread, samples] : ByThread(wanted)) {
    const auto found = got_threads.find(thread);
    ASSERT_NE(found, got_threads.end());
    ASSERT_EQ(found->second.size(), samples.size());
    int64_t wall_off = 0;
    int64_t cpu_off = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& a = found->second[i];
      const Sample& b = samples[i];
      ASSERT_EQ(a.stack, b.stack);
      ASSERT_EQ(a.count, b.count);
      ASSERT_EQ(a.flags, b.flags);
      ASSERT_EQ(a.time_ns % 1000, 0);
      ASSERT_LE(a.time_ns, b.time_ns);
      ASSERT_LT(b.time_ns - a.time_ns, 1000);
      wall_off += static_cast<int64_t>(a.wall_ns - b.wall_ns);
      cpu_off += static_cast<int64_t>(a.cpu_ns - b.cpu_ns);
      ASSERT_LT(std::abs(wall_off), 1000) << "sample " << i;
      ASSERT_LT(std::abs(cpu_off), 1000) << "sample " << i;
    }
  }
}

void ExpectRoundTrip(uint32_t seed, const RandomRecordingOptions& options) {
  MemoryRecording wanted;
  ASSERT_TRUE(RandomRecording(seed, options).WriteTo(wanted).has_value());
  const std::string bytes = ToStrobe(RandomRecording(seed, options));
  const auto file = OpenStrobe(bytes);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_EQ((*file)->metadata(), wanted.metadata());
  EXPECT_EQ((*file)->quality(), wanted.quality());
  ExpectSameTables((*file)->tables(), wanted.tables());
  ExpectSameSamples(ReadSamples(**file), wanted.samples());
  EXPECT_EQ(ReadSamples(**file), ReadSamples(**file)) << "may be read as often as needed";
}

class RoundTrip : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RoundTrip, KeepsARandomRecording) { ExpectRoundTrip(GetParam(), {}); }

TEST_P(RoundTrip, KeepsManyThreads) {
  ExpectRoundTrip(GetParam() + 1000,
                  {.threads = 3000, .appends = 10, .samples_per_append = 2000, .functions = 300});
}

TEST_P(RoundTrip, KeepsManyDeepStacks) {
  ExpectRoundTrip(GetParam() + 2000, {.threads = 2,
                                      .appends = 3,
                                      .samples_per_append = 3000,
                                      .functions = 3000,
                                      .max_depth = 400});
}

// As long as the sampler takes them. They can be packed so well that a reader would not believe it.
constexpr RandomRecordingOptions kLongNames{.appends = 10,
                                            .samples_per_append = 2000,
                                            .functions = 2000,
                                            .long_name_of = 1,
                                            .longest_name = 65'536};

TEST_P(RoundTrip, KeepsManyLongNames) { ExpectRoundTrip(GetParam() + 3000, kLongNames); }

TEST_P(RoundTrip, ReadsManyLongNamesUpToWhereTheFileIsCutOff) {
  const std::string bytes = ToStrobe(RandomRecording(GetParam() + 3000, kLongNames));
  for (size_t part = 1; part < 20; ++part) {
    const auto file = OpenStrobe(std::string_view(bytes).substr(0, bytes.size() * part / 20));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_THAT((*file)->cut_off(), ::testing::HasSubstr("cut off at byte"));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, ::testing::Range(0U, 4U));

TEST(StrobeFile, SameRecordingGivesSameBytes) {
  EXPECT_EQ(ToStrobe(RandomRecording(1, {})), ToStrobe(RandomRecording(1, {})));
  EXPECT_NE(ToStrobe(RandomRecording(1, {})), ToStrobe(RandomRecording(2, {})));
}

TEST(StrobeFile, KeepsARecordingWithoutSamples) { ExpectRoundTrip(1, {.appends = 0}); }

TEST(StrobeFile, MoreSamplesThanABlockHoldsInOneAppend) {
  ExpectRoundTrip(1, {.appends = 1, .samples_per_append = 40'000});
}

/// Writes one thread's samples of one stack.
struct OneThread {
  std::vector<Sample> samples;

  Result<void> WriteTo(RecordingSink& sink) const {
    Tables tables;
    const ThreadIndex thread = MakeThread(tables, 1, "MainThread");
    std::vector<Sample> all = samples;
    for (Sample& sample : all) {
      sample.thread = thread;
      sample.stack = MakeStack(tables, {{"f"}});
    }
    if (auto done = sink.Begin({}); !done) return done;
    if (auto done = sink.Append(tables, all, {}); !done) return done;
    return sink.Finish(tables, {});
  }
};

TEST(StrobeFile, SumsOfManyShortSamplesAreExact) {
  // 333 ns and 777 ns are below the resolution: rounded one by one nothing or twice as much would
  // be left of them.
  OneThread recording;
  uint64_t wall = 0;
  uint64_t cpu = 0;
  for (int64_t i = 1; i <= 100'000; ++i) {
    recording.samples.push_back({.time_ns = i * 777, .wall_ns = 777, .cpu_ns = 333});
    wall += 777;
    cpu += 333;
  }
  const auto file = OpenStrobe(ToStrobe(recording));
  ASSERT_TRUE(file.has_value());
  for (const Sample& sample : ReadSamples(**file)) {
    wall -= sample.wall_ns;
    cpu -= sample.cpu_ns;
  }
  EXPECT_LT(std::abs(static_cast<int64_t>(wall)), 1000);
  EXPECT_LT(std::abs(static_cast<int64_t>(cpu)), 1000);
}

/// Ten seconds at 1 kHz, each sample some microseconds after its deadline.
struct OnTime {
  bool told;

  Result<void> WriteTo(RecordingSink& sink) const {
    Tables tables;
    Sample sample{.thread = MakeThread(tables, 1, "MainThread")};
    DeadlineSeries series{.last_ns = 0, .period_ns = 1'000'000, .state = 4711};
    if (auto done = sink.Begin({}); !done) return done;
    if (told) sink.Expect(series);
    for (int64_t i = 0; i < 10'000; ++i) {
      if (i == 5000) series.period_ns *= 2;
      if (told && i == 5000) sink.Expect(series);
      const int64_t time_ns = series.Draw() + i % 8 * 1000;
      sample.wall_ns = static_cast<uint64_t>(time_ns - std::exchange(sample.time_ns, time_ns));
      if (auto done = sink.Append(tables, std::span(&sample, 1), {}); !done) return done;
    }
    return sink.Finish(tables, {});
  }
};

TEST(StrobeFile, KnownDeadlinesNeedNotBeStored) {
  const std::string told = ToStrobe(OnTime{true}), untold = ToStrobe(OnTime{false});
  EXPECT_LT(told.size() + 10'000, untold.size());
  const auto file = OpenStrobe(told), other = OpenStrobe(untold);
  ASSERT_TRUE(file.has_value() && other.has_value());
  EXPECT_EQ(ReadSamples(**file), ReadSamples(**other));
}

TEST(StrobeFile, ThreadsTakeTheirLastName) {
  StrobeWriter writer(testing::MakeFile(""), "test.strobe");
  Tables tables;
  const ThreadIndex thread = MakeThread(tables, 77, "");
  ASSERT_TRUE(writer.Begin({}).has_value());
  const Sample sample{.time_ns = 1'000'000'000, .thread = thread};
  ASSERT_TRUE(writer.Append(tables, std::span(&sample, 1), {}).has_value());
  tables.RenameThread(thread, tables.Intern("worker"));
  ASSERT_TRUE(writer.Finish(tables, {}).has_value());
  const auto file = OpenStrobe(testing::Contents(writer.TakeFd()));
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ((*file)->tables().thread_count(), 1U);
  EXPECT_EQ((*file)->tables().text((*file)->tables().thread(thread).name), "worker");
  EXPECT_EQ((*file)->tables().thread(thread).tid, 77U);
}

TEST(StrobeFile, ABatchOfASecondIsOnDiskWhenAppendReturns) {
  StrobeWriter writer(testing::MakeFile(""), "test.strobe");
  Tables tables;
  const ThreadIndex thread = MakeThread(tables, 1, "");
  Quality so_far;
  so_far.samples = 7;
  ASSERT_TRUE(writer.Begin({}).has_value());
  for (int64_t second = 1; second <= 3; ++second) {
    const Sample sample{.time_ns = second * 990'000'000, .thread = thread};
    ASSERT_TRUE(writer.Append(tables, std::span(&sample, 1), so_far).has_value());
  }
  const auto file = OpenStrobe(testing::Contents(writer.TakeFd()));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(ReadSamples(**file).size(), 3U);
  EXPECT_EQ((*file)->quality().samples, 7U);
  EXPECT_FALSE((*file)->quality().complete);
}

}  // namespace
}  // namespace pystrobe::store
