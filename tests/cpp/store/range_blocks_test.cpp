// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, written and read.
#include "profiler/store/range_blocks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>

#include "profiler/model/gpu_translation.h"
#include "profiler/store/recorder.h"
#include "profiler/store/strobe.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/many_stacks.h"
#include "tests/cpp/support/range_example.h"
#include "tests/cpp/support/recording_text.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using testing::Contents;
using testing::ErrorOfBlock;
using ::testing::HasSubstr;
using testing::MakeFile;
using testing::MakeRangeExample;
using testing::OpenStrobe;

constexpr int64_t kStart = 5'000'000'000;

/// The same record in ids that depend on nothing but itself.
std::string Canonical(const RangeRecord& record, const Tables& tables) {
  Tables own;
  const RangeRecord there = TranslateRanges(record, tables, own);
  return testing::ToText(own) + testing::ToText(there);
}

std::string RangesOf(const StrobeFile& file) {
  return file.ranges() == nullptr ? "none" : Canonical(*file.ranges(), file.tables());
}

/// Records with values of every size.
class RandomRanges {
 public:
  explicit RandomRanges(unsigned seed) : random_(seed) {}

  RangeRecord Make(Tables& tables, uint32_t ranges, size_t rows, size_t name_size) {
    RangeRecord record;
    for (uint32_t i = 0; i < ranges; ++i) {
      const bool has_parent = i > 0 && Below(4) > 0;
      record.ranges.push_back(
          {.parent = has_parent ? static_cast<uint32_t>(Below(i)) : NamedRange::kNoParent,
           .name = Name(tables, name_size),
           .domain = Below(2) == 0 ? Name(tables, 4) : kEmptyString,
           .count = Any(),
           .host_ns = Any()});
    }
    for (size_t i = 0; i < rows && ranges > 0; ++i) {
      record.streams.push_back(
          {static_cast<uint32_t>(Below(ranges)), Small(), Small(), Any(), Any(), Any(), Any()});
      RangeSpan span{.begin_ns = Time()};
      span.end_ns = span.begin_ns + Time();
      span.range = static_cast<uint32_t>(Below(ranges));
      span.tid = Small();
      record.spans.push_back(span);
    }
    record.spans_lost = Any();
    record.overflowed = Any();
    return record;
  }

 private:
  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }
  uint64_t Any() { return random_() >> Below(64); }
  uint32_t Small() { return static_cast<uint32_t>(Any()); }
  int64_t Time() { return static_cast<int64_t>(Any() % kMaxGpuTime); }

  StringId Name(Tables& tables, size_t size) {
    std::string name(size, 'n');
    for (char& c : name) c = static_cast<char>('a' + Below(26));
    return tables.Intern(name);
  }

  std::mt19937_64 random_;
};

/// A file with this record alone.
std::string FileOf(const Tables& tables, const RangeRecord& record) {
  StrobeWriter writer(MakeFile(""), "test.strobe");
  EXPECT_TRUE(writer.Begin({}));
  EXPECT_TRUE(writer.AppendRanges(tables, record));
  EXPECT_TRUE(writer.Finish({}, {}));
  return Contents(writer.TakeFd());
}

TEST(StoredRanges, AreReadAsTheyWereWritten) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Tables tables;
    tables.Intern("of something else");
    const RangeRecord record = RandomRanges(seed).Make(tables, seed, 7 * seed, 100);
    const auto file = OpenStrobe(FileOf(tables, record));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((*file)->cut_off(), "");
    EXPECT_EQ(RangesOf(**file), Canonical(record, tables));
  }
}

TEST(StoredRanges, MayBeLargerThanABlock) {
  Tables tables;
  const RangeRecord record = RandomRanges(1).Make(tables, 30'000, 100'000, 1'000);
  const std::string contents = FileOf(tables, record);
  const auto file = OpenStrobe(contents);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_TRUE(RangesOf(**file) == Canonical(record, tables));
  EXPECT_GT(record.ranges.size() * 1'000, kMaxPayload);
  const auto cut = OpenStrobe(std::string_view(contents).substr(0, contents.size() / 2));
  ASSERT_TRUE(cut);
  EXPECT_EQ((*cut)->ranges(), nullptr) << "half of it is none";
}

TEST(StoredRanges, StandBesideSamplesAndAGpu) {
  Tables samples_tables, gpu_tables;
  const ThreadIndex thread = testing::MakeThread(samples_tables, 1, "MainThread");
  const GpuRecord gpu = testing::MakeGpuExample(gpu_tables);
  const RangeRecord ranges = MakeRangeExample(gpu_tables, kStart, 1);
  StrobeWriter writer(MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  std::vector<Sample> samples;
  for (int i = 1; i <= 3; ++i) {
    samples.push_back({.time_ns = i * 1'000'000'000LL,
                       .wall_ns = 1'000'000'000,
                       .thread = thread,
                       .stack = testing::MakeStack(samples_tables, {{"f", 1}})});
    ASSERT_TRUE(writer.AppendRanges(gpu_tables, ranges));
    ASSERT_TRUE(writer.Append(samples_tables, std::span(samples).last(1), {}));
    ASSERT_TRUE(writer.AppendGpu(gpu_tables, gpu));
  }
  ASSERT_TRUE(writer.Finish(samples_tables, {}));
  const auto file = OpenStrobe(Contents(writer.TakeFd()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(testing::ReadSamples(**file), samples);
  EXPECT_EQ(RangesOf(**file), Canonical(ranges, gpu_tables));
  ASSERT_NE((*file)->gpu(), nullptr);
  EXPECT_EQ((*file)->gpu()->sums.size(), gpu.sums.size());
}

TEST(StoredRanges, OfAFileCutAtAnyByteAreTheLastWholeOnes) {
  Tables tables;
  std::vector<size_t> ends;
  std::vector<std::string> records = {"none"};
  ScopedFd fd = MakeFile("");
  const ScopedFd same(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  StrobeWriter writer(std::move(fd), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  const size_t head = Contents(same).size();
  RangeRecord record = MakeRangeExample(tables, kStart, 7);
  for (int i = 0; i < 3; ++i) {
    record.ranges[0].count += 10;
    record.ranges.push_back({.parent = 1, .name = tables.Intern(fmt::format("later {}", i))});
    ASSERT_TRUE(writer.AppendRanges(tables, record));
    ends.push_back(Contents(same).size());
    records.push_back(Canonical(record, tables));
  }
  const std::string contents = Contents(same);
  for (size_t size = head; size <= contents.size(); ++size) {
    const auto file = OpenStrobe(std::string_view(contents).substr(0, size));
    ASSERT_TRUE(file) << file.error().message;
    const auto whole = std::ranges::count_if(ends, [size](size_t end) { return end <= size; });
    ASSERT_EQ(RangesOf(**file), records[static_cast<size_t>(whole)]) << size;
  }
}

Columns EncodedExample() {
  Tables tables;
  const RangeRecord record = MakeRangeExample(tables, kStart, 4242);
  Columns columns;
  EXPECT_TRUE(RangeEncoder(tables, record).Encode(1 << 20, columns));
  return columns;
}

TEST(StoredRanges, ThatMakeNoSenseAreRefused) {
  const auto broken = [](RangeColumn column, std::initializer_list<uint64_t> values) {
    Columns columns = EncodedExample();
    if (column != kRangeRows) columns[column].clear();
    for (const uint64_t value : values) AppendVarint(columns[column], value);
    return ErrorOfBlock(BlockType::kRanges, columns);
  };
  EXPECT_EQ(ErrorOfBlock(BlockType::kRanges, EncodedExample()), "");
  EXPECT_EQ(broken(kRangeRows, {5, 1, 0, 1, 1}), "") << "within the first";
  EXPECT_THAT(broken(kRangeRows, {6, 1, 0, 1, 1}), HasSubstr("name or parent"));
  EXPECT_THAT(broken(kRangeRows, {0, 100, 0, 1, 1}), HasSubstr("name or parent"));
  EXPECT_THAT(broken(kRangeRows, {0, 1, 100, 1, 1}), HasSubstr("name or parent"));
  EXPECT_EQ(broken(kRangeStreams, {ZigZag(4), 0, 0, 1, 1, 1, 1}), "");
  for (const int64_t range : {-1, 5}) {
    EXPECT_THAT(broken(kRangeStreams, {ZigZag(range), 0, 0, 1, 1, 1, 1}), HasSubstr("of none"));
  }
  EXPECT_THAT(broken(kRangeStreams, {0, uint64_t{1} << 32, 0, 1, 1, 1, 1}), HasSubstr("of none"));
  EXPECT_THAT(broken(kRangeSpans, {0, 1, 2, 3, 4, 5, 6, 7}), HasSubstr("of none"));
}

TEST(StoredRanges, OpenAtTimesThatCannotBeAreRefused) {
  const auto read = [](int64_t end, int64_t duration, uint64_t tid) {
    Columns columns = EncodedExample();
    for (size_t column = kRangeSpans; column <= kRangeSpanThreads; ++column)
      columns[column].clear();
    AppendVarint(columns[kRangeSpans], 0);
    AppendVarint(columns[kRangeSpanEnds], ZigZag(end));
    AppendVarint(columns[kRangeSpanTimes], ZigZag(duration));
    AppendVarint(columns[kRangeSpanThreads], tid);
    return ErrorOfBlock(BlockType::kRanges, columns);
  };
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(read(10, 10, 0), "");
  EXPECT_EQ(read(2 * kMaxGpuTime - 2, kMaxGpuTime - 1, 0), "");
  for (const auto& [end, duration] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {10, 11},
           {10, -1},
           {-1, 0},
           {kMaxGpuTime, 0},
           {kMaxGpuTime, kMaxGpuTime},
           {kMost, kMost},
           {std::numeric_limits<int64_t>::min(), kMost}}) {
    EXPECT_THAT(read(end, duration, 0), HasSubstr("a time that cannot be")) << end << duration;
  }
  EXPECT_THAT(read(10, 1, ZigZag(-1)), HasSubstr("a time that cannot be"));
}

TEST(StoredRanges, ThatAreCutWithinAColumnAreRefused) {
  const Columns whole = EncodedExample();
  for (const RangeColumn column : {kRangeQuality, kRangeRows, kRangeStreams, kRangeSpans,
                                   kRangeSpanEnds, kRangeSpanTimes, kRangeSpanThreads}) {
    Columns columns = whole;
    ASSERT_FALSE(columns[column].empty());
    columns[column].pop_back();
    EXPECT_NE(ErrorOfBlock(BlockType::kRanges, columns), "") << int{column};
    columns = whole;
    columns[column].push_back(0x80);
    EXPECT_EQ(ErrorOfBlock(BlockType::kRanges, columns).empty(), column == kRangeQuality)
        << int{column};
  }
}

TEST(StoredRanges, TakeNoMoreThanTheirLimits) {
  Columns columns = EncodedExample();
  columns[kRangeStreams].clear();
  columns[kRangeRows].assign(5 * kMaxRanges, 0);
  EXPECT_EQ(ErrorOfBlock(BlockType::kRanges, columns), "");
  columns[kRangeRows].resize(5 * (kMaxRanges + 1));
  EXPECT_THAT(ErrorOfBlock(BlockType::kRanges, columns), HasSubstr("more ranges than can be"));
  columns = EncodedExample();
  columns[kRangeStreams].assign(7 * kMaxRanges, 0);
  EXPECT_EQ(ErrorOfBlock(BlockType::kRanges, columns), "");
  columns[kRangeStreams].resize(7 * (kMaxRanges + 1));
  EXPECT_THAT(ErrorOfBlock(BlockType::kRanges, columns),
              HasSubstr("more work in ranges than can be"));
  columns = EncodedExample();
  const auto resize_spans = [&columns](size_t count) {
    for (size_t column = kRangeSpans; column <= kRangeSpanThreads; ++column) {
      columns[column].assign(count, 0);
    }
  };
  resize_spans(kMaxRangeSpans);
  EXPECT_EQ(ErrorOfBlock(BlockType::kRanges, columns), "");
  resize_spans(kMaxRangeSpans + 1);
  EXPECT_THAT(ErrorOfBlock(BlockType::kRanges, columns),
              HasSubstr("more times of ranges than can be"));
}

// What samples, a GPU's record and ranges define has room together.
TEST(StoredRanges, CountAgainstTheLimitsOfTheFile) {
  const auto error_with = [](int blocks) {
    StrobeWriter writer(MakeFile(""), "test.strobe");
    EXPECT_TRUE(writer.Begin({}));
    std::string contents = Contents(writer.TakeFd());
    BlockPacker packer;
    const auto add = [&](BlockType type, Columns columns, bool is_first, bool is_last) {
      if (!is_first) {
        for (const Column column :
             {kStringLengths, kStringBytes, kFunctions, kFrames, kCalleeNew}) {
          columns[column].clear();
        }
        columns[kCalleeRanks].assign(1'000'000, 0);
      }
      if (is_last) columns[kQualityColumn].assign(18, 0);
      const auto block = packer.Pack(type, columns);
      contents.append(block->begin(), block->end());
    };
    for (int i = 0; i < 2; ++i) add(BlockType::kData, testing::ManyStacks(), i == 0, true);
    add(BlockType::kGpu, testing::ManyStacks(), true, true);
    for (int i = 0; i < blocks; ++i) {
      add(BlockType::kRanges, testing::ManyStacks(), i == 0, i == blocks - 1);
    }
    const auto file = OpenStrobe(contents);
    return file ? std::string() : file.error().message;
  };
  EXPECT_EQ(error_with(1), "");
  EXPECT_THAT(error_with(2), HasSubstr("more stacks than a file of this size can hold"));
}

TEST(StoredRanges, ThatCannotBeAreNotWritten) {
  Tables tables;
  const auto error_of = [&](auto change) {
    RangeRecord record = MakeRangeExample(tables, kStart, 1);
    change(record);
    StrobeWriter writer(MakeFile(""), "test.strobe");
    EXPECT_TRUE(writer.Begin({}));
    const auto written = writer.AppendRanges(tables, record);
    if (!written) {
      EXPECT_EQ(written.error().code, ErrorCode::kInvalidArgument);
    }
    return written ? "" : written.error().message;
  };
  EXPECT_EQ(error_of([](RangeRecord&) {}), "");
  EXPECT_THAT(error_of([](RangeRecord& r) { r.ranges[2].parent = 2; }), HasSubstr("within range"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.streams[1].range = 5; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.spans[1].range = 5; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.spans[1].begin_ns = -1; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.spans[1].end_ns = 0; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.ranges.resize(kMaxRanges + 1); }),
              HasSubstr("are over"));
  EXPECT_THAT(error_of([](RangeRecord& r) { r.spans.resize(kMaxRangeSpans + 1); }),
              HasSubstr("are over"));
}

// A program that enters ranges in a steady order, for about as long each time.
TEST(StoredRanges, HaveAMillionSpansInAFewBytesEach) {
  Tables tables;
  RangeRecord record = MakeRangeExample(tables, kStart, 4242);
  record.spans.clear();
  std::mt19937_64 random(1);
  int64_t now_ns = kStart;
  while (record.spans.size() < kMaxRangeSpans) {
    const auto range = static_cast<uint32_t>(record.spans.size() % record.ranges.size());
    const int64_t begin_ns = now_ns + 500 + static_cast<int64_t>(random() % 256);
    now_ns = begin_ns + range * 20'000 + static_cast<int64_t>(random() % 4096);
    record.spans.push_back({begin_ns, now_ns, range, 4242});
  }
  const std::string contents = FileOf(tables, record);
  const double bytes = static_cast<double>(contents.size()) / static_cast<double>(kMaxRangeSpans);
  RecordProperty("bytes_per_span", fmt::format("{:.2f}", bytes));
  EXPECT_LT(bytes, 5);
  const auto file = OpenStrobe(contents);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->ranges()->spans == record.spans);
}

class RecordedRanges : public ::testing::TestWithParam<int> {};

// Whichever write it is that the file does not take.
TEST_P(RecordedRanges, MoveToMemoryWithTheSamples) {
  const int full_after = GetParam();
  std::atomic<bool> stop{false};
  Tables tables, own_tables;
  testing::MakeThread(tables, 1, "MainThread");
  RangeRecord record = MakeRangeExample(own_tables, kStart, 1);
  ScopedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int file = fd.get();
  int step = 0;
  const auto fill_disk = [&] {
    const bool is_now = step++ == full_after;
    ASSERT_EQ(is_now ? fcntl(file, F_ADD_SEALS, F_SEAL_GROW) : 0, 0);
  };
  Recorder recorder(std::move(fd), "test", stop);
  fill_disk();
  ASSERT_TRUE(recorder.Begin({}));
  std::vector<Sample> samples;
  for (int second = 1; second <= 2; ++second) {
    fill_disk();
    samples.push_back(
        {.time_ns = second * 1'000'000'000LL,
         .wall_ns = 1'000'000'000,
         .stack = testing::MakeStack(tables, {{"f", static_cast<uint32_t>(second)}})});
    ASSERT_TRUE(recorder.Append(tables, std::span(samples).last(1), {}));
    fill_disk();
    ++record.ranges[0].count;
    ASSERT_TRUE(recorder.AppendRanges(own_tables, record));
  }
  fill_disk();
  ASSERT_TRUE(recorder.Finish(tables, {}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(stop);
  const auto read = StrobeFile::Open(recorder.TakeFd(), "test");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(testing::ReadSamples(**read), samples);
  EXPECT_EQ(RangesOf(**read), Canonical(record, own_tables));
}

INSTANTIATE_TEST_SUITE_P(AfterSteps, RecordedRanges, ::testing::Range(0, 6));

}  // namespace
}  // namespace pystrobe::store
