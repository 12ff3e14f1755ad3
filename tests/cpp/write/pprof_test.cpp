// SPDX-License-Identifier: Apache-2.0
//
// Reads the profile back field by field; what Go's pprof makes of it is tested in
// tests/python/test_formats.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <protozero/pbf_reader.hpp>

#include "profiler/write/gzip.h"
#include "tests/cpp/write/writing.h"

namespace pystrobe::write {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using testing::FillExample;
using testing::MakeThread;
using testing::MemoryRecording;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using testing::Written;
using testing::WrittenExample;

std::string Inflated(const std::string& gz) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gz.data()));
  stream.avail_in = static_cast<uInt>(gz.size());
  std::string bytes;
  int status = Z_OK;
  while (status == Z_OK) {
    std::string chunk(1 << 16, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    bytes.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U) << "bytes after the end of the stream";
  inflateEnd(&stream);
  return bytes;
}

struct DecodedSample {
  std::vector<uint64_t> locations;
  std::vector<uint64_t> values;
  std::map<std::string, std::string> labels;
};

/// The message as the .proto has it, strings looked up.
struct Decoded {
  std::vector<std::string> strings;
  std::vector<std::pair<std::string, std::string>> sample_types;
  std::vector<DecodedSample> samples;
  std::vector<std::map<uint32_t, uint64_t>> mappings;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> locations;  // id -> function, line
  std::map<uint64_t, std::map<uint32_t, uint64_t>> functions;
  std::vector<std::string> comments;
  std::string period_type;
  std::map<uint32_t, uint64_t> scalars;

  /// "function:line" root first.
  std::string Stack(const DecodedSample& sample) const {
    std::string text;
    for (auto id = sample.locations.rbegin(); id != sample.locations.rend(); ++id) {
      const auto [function, line] = locations.at(*id);
      if (!text.empty()) text += ";";
      text += fmt::format("{}:{}", strings.at(functions.at(function).at(2)), line);
    }
    return text;
  }
};

std::map<uint32_t, uint64_t> Scalars(protozero::pbf_reader message) {
  std::map<uint32_t, uint64_t> fields;
  while (message.next()) {
    if (message.wire_type() == protozero::pbf_wire_type::varint) {
      const uint32_t tag = message.tag();
      fields[tag] = message.get_uint64();
    } else {
      message.skip();
    }
  }
  return fields;
}

std::vector<uint64_t> Packed(protozero::pbf_reader& message) {
  const auto range = message.get_packed_uint64();
  return {range.begin(), range.end()};
}

DecodedSample DecodeSample(protozero::pbf_reader message, const std::vector<std::string>& strings) {
  DecodedSample sample;
  while (message.next()) {
    if (message.tag() == 1) {
      sample.locations = Packed(message);
    } else if (message.tag() == 2) {
      sample.values = Packed(message);
    } else {
      auto label = Scalars(message.get_message());
      sample.labels[strings.at(label[1])] =
          label.contains(2) ? strings.at(label[2]) : fmt::format("{}", label[3]);
    }
  }
  return sample;
}

Decoded Decode(const std::string& gz) {
  const std::string bytes = Inflated(gz);
  Decoded profile;
  for (protozero::pbf_reader message(bytes); message.next(6);) {
    profile.strings.push_back(message.get_string());
  }
  protozero::pbf_reader message(bytes);
  while (message.next()) {
    const uint32_t tag = message.tag();
    if (tag == 1) {
      auto type = Scalars(message.get_message());
      profile.sample_types.emplace_back(profile.strings.at(type[1]), profile.strings.at(type[2]));
    } else if (tag == 2) {
      profile.samples.push_back(DecodeSample(message.get_message(), profile.strings));
    } else if (tag == 3) {
      profile.mappings.push_back(Scalars(message.get_message()));
    } else if (tag == 4) {
      protozero::pbf_reader location = message.get_message();
      const uint64_t id = Scalars(location).at(1);
      EXPECT_TRUE(location.next(4));
      auto line = Scalars(location.get_message());
      profile.locations[id] = {line[1], line[2]};
    } else if (tag == 5) {
      auto function = Scalars(message.get_message());
      profile.functions[function[1]] = function;
    } else if (tag == 11) {
      profile.period_type = profile.strings.at(Scalars(message.get_message())[1]);
    } else if (tag == 13) {
      for (const uint64_t text : Packed(message))
        profile.comments.push_back(profile.strings.at(text));
    } else if (message.wire_type() == protozero::pbf_wire_type::varint) {
      profile.scalars[tag] = message.get_uint64();
    } else {
      message.skip();
    }
  }
  return profile;
}

TEST(PprofTest, CarriesStreamsOfAGpuBesideThreads) {
  const Decoded profile =
      Decode(WrittenExample(WritePprof, "gpu", {.mode = Mode::kGpu}, {.work = Work::kBoth}));
  EXPECT_THAT(profile.sample_types,
              ElementsAre(Pair("samples", "count"), Pair("wall", "nanoseconds"),
                          Pair("cpu", "nanoseconds"), Pair("gil", "nanoseconds"),
                          Pair("gpu", "nanoseconds"), Pair("gpu_works", "count")));
  std::map<std::string, std::vector<uint64_t>> values;
  for (const DecodedSample& sample : profile.samples) {
    values[sample.labels.at("thread") + " " + profile.Stack(sample)] = sample.values;
  }
  constexpr uint64_t kSecond = 1'000'000'000;
  EXPECT_THAT(values, UnorderedElementsAre(
                          Pair("MainThread [4242] <module>:30;train:12;step:5",
                               ElementsAre(1000, kSecond, kSecond, kSecond, 0, 0)),
                          Pair("GPU 0 stream 7 <module>:30;train:12;step:5;gemm<float, 128>:0",
                               ElementsAre(0, 0, 0, 0, 611'100'000, 1100)),
                          Pair("GPU 0 stream 7 <module>:30;train:12;step:5;relu:0",
                               ElementsAre(0, 0, 0, 0, 2'001'000, 1000)),
                          Pair("GPU 0 stream 7 set:0", ElementsAre(0, 0, 0, 0, 4'000, 4)),
                          Pair("GPU 0 stream 13 <module>:30;train:11;load:20;copy to the device:0",
                               ElementsAre(0, 0, 0, 0, 10'500'000, 10))));
  EXPECT_EQ(profile.strings.at(profile.scalars.at(14)), "gpu");
}

// Elapsed time and the lock are not known then; viewers would show zeros.
TEST(PprofTest, OfARecordingBySignalsHasCpuTimeAlone) {
  MemoryRecording recording;
  ASSERT_TRUE(FillExample("shop", recording));
  recording.mutable_metadata().pause_mode = kBySignals;
  const Decoded profile = Decode(Written(WritePprof, recording, {.mode = Mode::kCpu}));
  EXPECT_THAT(profile.sample_types,
              ElementsAre(Pair("samples", "count"), Pair("cpu", "nanoseconds")));
  EXPECT_EQ(profile.period_type, "cpu");
  EXPECT_THAT(profile.samples, Each(Field(&DecodedSample::values, SizeIs(2))));
}

TEST(PprofTest, CarriesFourValuesForEveryThreadAndStack) {
  const Decoded profile = Decode(WrittenExample(WritePprof, "shop"));
  EXPECT_THAT(profile.sample_types,
              ElementsAre(Pair("samples", "count"), Pair("wall", "nanoseconds"),
                          Pair("cpu", "nanoseconds"), Pair("gil", "nanoseconds")));
  EXPECT_EQ(profile.period_type, "wall");
  std::map<std::string, std::vector<uint64_t>> values;
  for (const DecodedSample& sample : profile.samples) {
    values[sample.labels.at("thread_id") + " " + profile.Stack(sample)] = sample.values;
  }
  constexpr uint64_t kMs = 1'000'000;
  EXPECT_THAT(
      values,
      UnorderedElementsAre(
          Pair("4242 <module>:40;main:31", ElementsAre(100, 100 * kMs, 100 * kMs, 100 * kMs)),
          Pair("4242 <module>:40;main:33;Json.encode:12",
               ElementsAre(400, 400 * kMs, 400 * kMs, 400 * kMs)),
          Pair("4242 <module>:40;main:33;Json.encode:14",
               ElementsAre(200, 200 * kMs, 200 * kMs, 200 * kMs)),
          Pair("4242 <module>:40;main:33;read:7", ElementsAre(300, 300 * kMs, 0, 0)),
          Pair("4243 Thread.run:99;crunch:3", ElementsAre(500, 500 * kMs, 125 * kMs, 0)),
          Pair("4250 Thread.run:99", ElementsAre(1000, 1000 * kMs, 0, 0))));
}

TEST(PprofTest, KeepsTheRulesOfTheFormat) {
  for (const std::string_view example : testing::ExampleNames()) {
    const Decoded profile = Decode(WrittenExample(WritePprof, example));
    ASSERT_FALSE(profile.strings.empty());
    EXPECT_EQ(profile.strings[0], "");
    EXPECT_FALSE(profile.locations.contains(0));
    EXPECT_FALSE(profile.functions.contains(0));
    for (const DecodedSample& sample : profile.samples) {
      ASSERT_EQ(sample.values.size(), profile.sample_types.size());
      ASSERT_FALSE(sample.locations.empty());
      for (const uint64_t id : sample.locations) ASSERT_TRUE(profile.locations.contains(id));
    }
    for (const auto& [id, place] : profile.locations) {
      ASSERT_TRUE(profile.functions.contains(place.first)) << id;
    }
    // has_functions, has_filenames, has_line_numbers, has_inline_frames of the one mapping.
    ASSERT_EQ(profile.mappings.size(), 1U);
    for (const uint32_t field : {7U, 8U, 9U, 10U}) EXPECT_EQ(profile.mappings[0].at(field), 1U);
  }
}

TEST(PprofTest, FunctionsHaveANameAFileAndTheirFirstLine) {
  const Decoded profile = Decode(WrittenExample(WritePprof, "shop", {}, {.thread = "worker"}));
  std::map<std::string, std::pair<std::string, uint64_t>> found;
  for (const auto& [id, function] : profile.functions) {
    EXPECT_FALSE(function.contains(3));  // system_name: pprof would demangle it
    found[profile.strings.at(function.at(2))] = {profile.strings.at(function.at(4)),
                                                 function.at(5)};
  }
  EXPECT_THAT(found, ElementsAre(Pair("Thread.run", Pair("/lib/threading.py", 90)),
                                 Pair("crunch", Pair("/app/w.py", 2))));
}

TEST(PprofTest, TellsTimeRateModeAndQuality) {
  const Decoded profile =
      Decode(WrittenExample(WritePprof, "shop", {.mode = Mode::kCpu}, {.since_ns = 500'000'000}));
  EXPECT_EQ(profile.scalars.at(9), 1'700'000'000'500'000'000U);
  EXPECT_EQ(profile.scalars.at(10), 500'000'000U);
  EXPECT_EQ(profile.scalars.at(12), 1'000'000U);
  EXPECT_EQ(profile.strings.at(profile.scalars.at(14)), "cpu");
  EXPECT_THAT(profile.comments,
              ElementsAre("python3 shop.py --port 8000",
                          "pystrobe 0.1.0, Python 3.13.0, process 4242 on example, pause preempt",
                          ::testing::HasSubstr("proved exact")));
}

TEST(PprofTest, ThreadsAreLabels) {
  const Decoded profile = Decode(WrittenExample(WritePprof, "shop", {}, {.thread = "worker"}));
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_THAT(profile.samples[0].labels,
              ElementsAre(Pair("thread", "worker [4243]"), Pair("thread_id", "4243")));
}

TEST(PprofTest, AStackWithoutFramesHasAName) {
  const Decoded profile = Decode(WrittenExample(WritePprof, "odd"));
  size_t found = 0;
  for (const DecodedSample& sample : profile.samples) {
    found += profile.Stack(sample) == "[no Python frames]:0" ? 1U : 0U;
  }
  EXPECT_EQ(found, 1U);
  EXPECT_THAT(profile.strings, ::testing::Not(::testing::Contains("[not looked at]")));
}

TEST(PprofTest, TellsWhyThereIsNoStack) {
  MemoryRecording recording;
  const ThreadIndex thread = MakeThread(recording.mutable_tables(), 1, "main");
  recording.Add({.time_ns = 1, .wall_ns = 1, .thread = thread, .stack = kEmptyStack});
  recording.Add({.time_ns = 4, .wall_ns = 3, .thread = thread, .count = 2, .flags = kSampleUnseen});
  const Decoded profile = Decode(Written(WritePprof, recording));
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_EQ(profile.Stack(profile.samples[0]), "[no Python frames]:0");
  EXPECT_EQ(profile.Stack(profile.samples[1]), "[not looked at]:0");
  EXPECT_THAT(profile.samples[0].values, ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(profile.samples[1].values, ElementsAre(2, 3, 0, 0));
}

TEST(GzipTest, BytesThatDoNotCompressComeBack) {
  std::string noise(300'000, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  testing::StringOutput output;
  GzipOutput gzip(output);
  ASSERT_TRUE(gzip.Write(noise));
  ASSERT_TRUE(gzip.Write(""));
  ASSERT_TRUE(gzip.Finish());
  EXPECT_GT(output.text.size(), 290'000U);
  EXPECT_EQ(Inflated(output.text), noise);
}

TEST(GzipTest, NothingIsAValidStream) {
  testing::StringOutput output;
  GzipOutput gzip(output);
  ASSERT_TRUE(gzip.Finish());
  EXPECT_EQ(Inflated(output.text), "");
}

}  // namespace
}  // namespace pystrobe::write
