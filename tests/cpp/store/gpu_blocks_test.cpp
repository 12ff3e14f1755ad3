// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, written and read.
#include "profiler/store/gpu_blocks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>
#include <random>

#include "profiler/model/gpu_translation.h"
#include "profiler/store/recorder.h"
#include "profiler/store/strobe.h"
#include "tests/cpp/support/gpu_example.h"
#include "tests/cpp/support/many_stacks.h"
#include "tests/cpp/support/recording_text.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using testing::AddGpuSpans;
using testing::Contents;
using testing::ErrorOfBlock;
using ::testing::HasSubstr;
using testing::MakeFile;
using testing::MakeGpuExample;
using testing::MakeStack;
using testing::ManyStacks;
using testing::OpenStrobe;

/// The same record in ids that depend on nothing but itself.
std::string Canonical(const GpuRecord& record, const Tables& tables) {
  Tables own;
  const GpuRecord there = TranslateGpu(record, tables, own);
  return testing::ToText(own) + testing::ToText(there);
}

std::string GpuOf(const StrobeFile& file) {
  return file.gpu() == nullptr ? "none" : Canonical(*file.gpu(), file.tables());
}

/// Records with values of every size.
class RandomGpu {
 public:
  explicit RandomGpu(unsigned seed) : random_(seed) {}

  GpuRecord Make(Tables& tables, size_t kernels, size_t sums, size_t name_size) {
    GpuRecord record;
    record.devices = {{0, Name(tables, 10), 132}, {3, Name(tables, 10), Small()}};
    for (size_t i = 0; i < kernels; ++i) {
      GpuKernel& kernel = record.kernels.emplace_back();
      kernel.kind = static_cast<GpuWorkKind>(Below(3));
      kernel.name = Name(tables, name_size);
      kernel.short_name = Name(tables, 5);
      kernel.block = {Small(), Small(), Small()};
      kernel.cluster = {Small(), 0, 1};
      kernel.registers = Small();
      kernel.static_shared = Small();
      kernel.dynamic_shared = Small();
    }
    for (size_t i = 0; i < sums; ++i) record.sums.push_back(MakeSum(tables, kernels));
    for (size_t i = 0; i < 3 * sums; ++i) record.spans.push_back(MakeSpan(record));
    const auto stack = [this, &tables] {
      return StackId{static_cast<uint32_t>(Below(tables.stack_count()))};
    };
    for (size_t i = 0; i < sums; ++i) {
      record.idles.push_back({Small(), static_cast<GpuIdleCause>(Below(kGpuIdleCauses)), stack(),
                              stack(), Any(), Any(), Any()});
      record.waits.push_back({stack(), Any(), Any(), Any()});
      const auto begin = static_cast<int64_t>(Any() >> 3),
                 length = static_cast<int64_t>(Any() >> 3);
      const auto idle = static_cast<uint32_t>(Below(record.idles.size()));
      record.gaps.push_back({begin, begin + length, idle, Small()});
    }
    record.uses = {{0, Any(), Any()}, {Small(), Any(), Any()}};
    record.spans_lost = Any();
    GpuQuality& quality = record.quality;
    quality = {Any(), Any(), Any(), Any(), Any(), Any(), Any(), Any(), Any()};
    quality.duration_ns = static_cast<int64_t>(Any());
    quality.own_cpu_ns = static_cast<int64_t>(Any());
    quality.captured = Any();
    quality.of_graphs = Any();
    quality.launches_only = Below(2) == 0;
    quality.source = Name(tables, 5);
    return record;
  }

 private:
  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }
  uint64_t Any() { return random_() >> Below(64); }
  uint32_t Small() { return static_cast<uint32_t>(Any()); }

  StringId Name(Tables& tables, size_t size) {
    std::string name(size, 'k');
    for (char& c : name) c = static_cast<char>('a' + Below(26));
    return tables.Intern(name);
  }

  GpuSum MakeSum(Tables& tables, size_t kernels) {
    GpuSum sum;
    for (uint64_t depth = Below(6); depth > 0; --depth) {
      const auto line = static_cast<uint32_t>(Below(5));
      sum.stack = tables.Push(sum.stack, testing::MakeFrame(tables, {"f", line, "f.py"}));
    }
    sum.kernel = static_cast<uint32_t>(Below(kernels));
    sum.device = Small();
    sum.stream = Small();
    for (uint64_t* field :
         {&sum.count, &sum.untimed, &sum.total_ns, &sum.min_ns, &sum.max_ns, &sum.bytes}) {
      *field = Any();
    }
    for (uint64_t& bucket : sum.buckets) bucket = Below(3) == 0 ? Any() : 0;
    sum.last_grid = {Small(), Small(), Small()};
    if (Below(2) == 0) sum.occupancy = {Small(), 0.5, static_cast<double>(Below(100)) / 7, 0.875};
    if (Below(2) == 0) sum.advice = Name(tables, 20);
    return sum;
  }

  GpuSpan MakeSpan(const GpuRecord& record) {
    const auto time = [this] { return static_cast<int64_t>(Any() % kMaxGpuTime); };
    GpuSpan span{.begin_ns = time(), .tid = Small(), .launch_ns = Below(3) == 0 ? 0 : time()};
    span.end_ns = span.begin_ns + time();
    span.sum = static_cast<uint32_t>(Below(record.sums.size()));
    const GpuKernel& kernel = record.kernels[record.sums[span.sum].kernel];
    if (kernel.kind != GpuWorkKind::kKernel) span.bytes = Any();
    return span;
  }

  std::mt19937_64 random_;
};

TEST(StoredGpu, IsReadAsItWasWritten) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Tables tables;
    const GpuRecord record = RandomGpu(seed).Make(tables, 1 + seed, 5 * seed, 100);
    StrobeWriter writer(MakeFile(""), "test.strobe");
    ASSERT_TRUE(writer.Begin({}));
    ASSERT_TRUE(writer.AppendGpu(tables, record));
    ASSERT_TRUE(writer.Finish({}, {}));
    const auto file = OpenStrobe(Contents(writer.TakeFd()));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((*file)->cut_off(), "");
    EXPECT_EQ(GpuOf(**file), Canonical(record, tables));
  }
}

// Names of CUTLASS, of which a program may have thousands.
TEST(StoredGpu, MayBeLargerThanABlock) {
  Tables tables;
  const GpuRecord record = RandomGpu(1).Make(tables, 10'000, 40'000, 2'000);
  StrobeWriter writer(MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  ASSERT_TRUE(writer.AppendGpu(tables, record));
  ASSERT_TRUE(writer.Finish({}, {}));
  const std::string contents = Contents(writer.TakeFd());
  const auto file = OpenStrobe(contents);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_EQ(GpuOf(**file), Canonical(record, tables));
  EXPECT_GT(record.kernels.size() * 2'000, kMaxPayload);
  const auto cut = OpenStrobe(std::string_view(contents).substr(0, contents.size() / 2));
  ASSERT_TRUE(cut);
  EXPECT_EQ((*cut)->gpu(), nullptr) << "half of it is none";
}

TEST(StoredGpu, SharesStacksWithSamplesAndLeavesTheirIdsAlone) {
  Tables samples_tables, gpu_tables;
  const ThreadIndex thread = testing::MakeThread(samples_tables, 1, "MainThread");
  StrobeWriter writer(MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  const GpuRecord record = MakeGpuExample(gpu_tables);
  ASSERT_TRUE(writer.AppendGpu(gpu_tables, record));
  std::vector<Sample> samples;
  for (int i = 1; i <= 3; ++i) {
    const StackId stack =
        i < 3 ? MakeStack(samples_tables, {{"main", 1}, {"f", static_cast<uint32_t>(i)}})
              : MakeStack(samples_tables, {{"<module>", 30}, {"train", 12}, {"step", 5}});
    samples.push_back({.time_ns = i * 1'000'000'000LL,
                       .wall_ns = 1'000'000'000,
                       .thread = thread,
                       .stack = stack});
    ASSERT_TRUE(writer.Append(samples_tables, std::span(samples).last(1), {}));
    ASSERT_TRUE(writer.AppendGpu(gpu_tables, record));
  }
  ASSERT_TRUE(writer.Finish(samples_tables, {}));
  const auto file = OpenStrobe(Contents(writer.TakeFd()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(testing::ReadSamples(**file), samples);
  EXPECT_EQ(GpuOf(**file), Canonical(record, gpu_tables));
  EXPECT_EQ((*file)->gpu()->sums[0].stack, samples[2].stack);
}

TEST(StoredGpu, OfAFileCutAtAnyByteIsTheLastWholeOne) {
  Tables tables;
  std::vector<size_t> ends;
  std::vector<std::string> records = {"none"};
  ScopedFd fd = MakeFile("");
  const ScopedFd same(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  StrobeWriter writer(std::move(fd), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  const size_t head = Contents(same).size();
  GpuRecord record = MakeGpuExample(tables);
  for (uint32_t i = 0; i < 3; ++i) {
    record.sums[0].count += 10;
    record.sums.push_back({.stack = MakeStack(tables, {{"later", i}}), .stream = i});
    ASSERT_TRUE(writer.AppendGpu(tables, record));
    ends.push_back(Contents(same).size());
    records.push_back(Canonical(record, tables));
  }
  const std::string contents = Contents(same);
  for (size_t size = head; size <= contents.size(); ++size) {
    const auto file = OpenStrobe(std::string_view(contents).substr(0, size));
    ASSERT_TRUE(file) << file.error().message;
    const auto whole = std::ranges::count_if(ends, [size](size_t end) { return end <= size; });
    ASSERT_EQ(GpuOf(**file), records[static_cast<size_t>(whole)]) << size;
  }
}

TEST(StoredGpu, ThatMakesNoSenseIsRefused) {
  Tables tables;
  GpuRecord record = MakeGpuExample(tables);
  AddGpuSpans(record, 1'000'000'000, 4242);
  const auto broken = [&](auto change) {
    GpuRecord changed = record;
    change(changed);
    Columns columns;
    EXPECT_TRUE(GpuEncoder(tables, changed).Encode(1 << 20, columns));
    return ErrorOfBlock(BlockType::kGpu, columns);
  };
  constexpr StringId kNoString{1000};
  EXPECT_EQ(broken([](GpuRecord&) {}), "");
  EXPECT_THAT(broken([](GpuRecord& r) { r.devices[0].name = kNoString; }), HasSubstr("a GPU"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.kernels[1].name = kNoString; }), HasSubstr("a kernel"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.kernels[1].short_name = kNoString; }),
              HasSubstr("a kernel"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.kernels[0].kind = static_cast<GpuWorkKind>(3); }),
              HasSubstr("a kernel"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.sums[2].kernel = 5; }), HasSubstr("a number"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.sums[2].advice = kNoString; }), HasSubstr("a number"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.sums[2].stack = StackId{1000}; }),
              HasSubstr("an undefined stack"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.quality.source = kNoString; }), HasSubstr("quality"));
  constexpr StackId kNoStack{1000};
  EXPECT_THAT(broken([](GpuRecord& r) { r.idles[1].from = kNoStack; }), HasSubstr("an idle time"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.idles[1].to = kNoStack; }), HasSubstr("an idle time"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.idles[0].cause = static_cast<GpuIdleCause>(6); }),
              HasSubstr("an idle time"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.waits[0].stack = kNoStack; }), HasSubstr("a wait"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.gaps[1].idle = 4; }), HasSubstr("an idle time"));
  EXPECT_THAT(broken([](GpuRecord& r) { r.gaps[1].begin_ns = -1; }), HasSubstr("an idle time"));
  for (const int64_t time : {int64_t{-1}, kMaxGpuTime}) {
    EXPECT_THAT(broken([&](GpuRecord& r) { r.spans[2].begin_ns = time; }), HasSubstr("a time"));
    EXPECT_THAT(broken([&](GpuRecord& r) { r.spans[2].launch_ns = time; }), HasSubstr("a time"));
  }
  EXPECT_THAT(broken([](GpuRecord& r) { r.spans[2].end_ns = r.spans[2].begin_ns - 1; }),
              HasSubstr("a time"));
  for (const double number :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(broken([&](GpuRecord& r) { r.sums[0].occupancy->waves = number; }),
                HasSubstr("an occupancy"));
  }
}

TEST(StoredGpu, ThatIsCutWithinAColumnIsRefused) {
  Tables tables;
  GpuRecord record = MakeGpuExample(tables);
  AddGpuSpans(record, 1'000'000'000, 4242);
  Columns whole;
  ASSERT_TRUE(GpuEncoder(tables, record).Encode(1 << 20, whole));
  for (const GpuColumn column :
       {kGpuQuality, kGpuDevices, kGpuKernels, kGpuSums, kGpuStacks, kGpuOccupancies, kGpuSpanSums,
        kGpuSpanBegins, kGpuSpanTimes, kGpuSpanLaunches, kGpuSpanThreads, kGpuUses, kGpuIdles,
        kGpuWaits}) {
    Columns columns = whole;
    ASSERT_FALSE(columns[column].empty());
    // The last figure of quality is not there in older files.
    columns[column].resize(columns[column].size() - (column == kGpuQuality ? 2 : 1));
    EXPECT_NE(ErrorOfBlock(BlockType::kGpu, columns), "") << int{column};
    columns = whole;
    columns[column].push_back(0x80);
    EXPECT_EQ(ErrorOfBlock(BlockType::kGpu, columns).empty(), column == kGpuQuality) << int{column};
  }
}

TEST(StoredGpu, TakesNoMoreThanItsLimits) {
  Columns columns;
  columns[kGpuQuality].assign(13, 0);
  columns[kGpuDevices].assign(3 * kMaxGpuRows, 0);
  EXPECT_EQ(ErrorOfBlock(BlockType::kGpu, columns), "");
  columns[kGpuDevices].resize(3 * (kMaxGpuRows + 1));
  EXPECT_THAT(ErrorOfBlock(BlockType::kGpu, columns), HasSubstr("more GPUs than can be"));
  columns[kGpuDevices].clear();
  for (const auto& [column, row] : {std::pair{kGpuUses, 3}, {kGpuIdles, 7}, {kGpuWaits, 4}}) {
    columns[column].assign(row * kMaxGpuRows, 0);
    EXPECT_EQ(ErrorOfBlock(BlockType::kGpu, columns), "");
    columns[column].resize(row * (kMaxGpuRows + 1));
    EXPECT_THAT(ErrorOfBlock(BlockType::kGpu, columns), HasSubstr("than can be"));
    columns[column].clear();
  }
  GpuRecord record;
  record.devices.resize(kMaxGpuRows + 1);
  StrobeWriter writer(MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  const auto refused = writer.AppendGpu({}, record);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

/// `count` works of a program that launches the same 50 kernels again and again, ahead of the
/// device, which takes a little longer or less for each.
void AddSteadySpans(GpuRecord& record, size_t count) {
  std::mt19937_64 random(1);
  const auto below = [&random](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  int64_t launch_ns = 1'000'000'000'000, end_ns = launch_ns;
  for (size_t i = 0; i < count; ++i) {
    const auto sum = static_cast<uint32_t>(i % 50);
    launch_ns += 4'000 + below(3'000);
    const int64_t begin_ns = std::max(end_ns + 700 + below(400), launch_ns + 3'000 + below(500));
    end_ns = begin_ns + 2'000 + sum * 300 + below(256);
    record.spans.push_back({begin_ns, end_ns, sum, 4242, launch_ns});
  }
}

GpuRecord SteadyRecord(Tables& tables) {
  GpuRecord record;
  record.kernels = {testing::MakeGpuKernel(tables, GpuWorkKind::kKernel, "k", "k")};
  record.sums.resize(50);
  return record;
}

TEST(StoredGpu, HasAMillionSpansInAFewBytesEach) {
  Tables tables;
  GpuRecord record = SteadyRecord(tables);
  AddSteadySpans(record, kMaxGpuSpans);
  StrobeWriter writer(MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  ASSERT_TRUE(writer.AppendGpu(tables, record));
  ASSERT_TRUE(writer.Finish({}, {}));
  const std::string contents = Contents(writer.TakeFd());
  const double bytes = static_cast<double>(contents.size()) / static_cast<double>(kMaxGpuSpans);
  RecordProperty("bytes_per_span", fmt::format("{:.2f}", bytes));
  EXPECT_LT(bytes, 6);
  const auto file = OpenStrobe(contents);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->gpu()->spans == record.spans);
}

TEST(StoredGpu, WhoseSpansCannotBeIsNotWritten) {
  Tables tables;
  const auto error_of = [&](auto change) {
    GpuRecord record = SteadyRecord(tables);
    AddSteadySpans(record, 3);
    change(record);
    StrobeWriter writer(MakeFile(""), "test.strobe");
    EXPECT_TRUE(writer.Begin({}));
    const auto written = writer.AppendGpu(tables, record);
    return written ? "" : written.error().message;
  };
  EXPECT_EQ(error_of([](GpuRecord&) {}), "");
  EXPECT_THAT(error_of([](GpuRecord& r) { r.spans[1].sum = 50; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](GpuRecord& r) { r.spans[1].begin_ns = -1; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](GpuRecord& r) { r.spans[1].end_ns = 0; }), HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](GpuRecord& r) { r.sums[r.spans[1].sum].kernel = 1; }),
              HasSubstr("cannot be"));
  EXPECT_THAT(error_of([](GpuRecord& r) { r.spans.resize(kMaxGpuSpans + 1); }),
              HasSubstr("are over"));
}

TEST(StoredGpu, TakesNoMoreSpansThanItsLimit) {
  Tables tables;
  const GpuRecord record = SteadyRecord(tables);
  Columns columns;
  ASSERT_TRUE(GpuEncoder(tables, record).Encode(1 << 20, columns));
  for (const GpuColumn column :
       {kGpuSpanSums, kGpuSpanBegins, kGpuSpanTimes, kGpuSpanLaunches, kGpuSpanThreads}) {
    columns[column].assign(kMaxGpuSpans, 0);
  }
  EXPECT_EQ(ErrorOfBlock(BlockType::kGpu, columns), "");
  for (const GpuColumn column :
       {kGpuSpanSums, kGpuSpanBegins, kGpuSpanTimes, kGpuSpanLaunches, kGpuSpanThreads}) {
    columns[column].push_back(0);
  }
  EXPECT_THAT(ErrorOfBlock(BlockType::kGpu, columns), HasSubstr("more works of a GPU than can be"));
}

// What samples have defined and what a GPU's record defines has room together.
TEST(StoredGpu, CountsAgainstTheLimitsOfTheFile) {
  const auto error_with = [](int blocks) {
    StrobeWriter writer(MakeFile(""), "test.strobe");
    EXPECT_TRUE(writer.Begin({}));
    std::string contents = Contents(writer.TakeFd());
    BlockPacker packer;
    const auto add = [&](BlockType type, Columns columns, bool again) {
      for (const Column column : {kStringLengths, kStringBytes, kFunctions, kFrames, kCalleeNew}) {
        if (again) columns[column].clear();
      }
      if (again) columns[kCalleeRanks].assign(1'000'000, 0);
      const auto block = packer.Pack(type, columns);
      contents.append(block->begin(), block->end());
    };
    Columns data = ManyStacks();
    data[kQualityColumn].assign(18, 0);
    for (int i = 0; i < 2; ++i) add(BlockType::kData, data, i > 0);
    for (int i = 0; i < blocks; ++i) {
      Columns gpu = ManyStacks();
      if (i == blocks - 1) gpu[kGpuQuality].assign(13, 0);
      add(BlockType::kGpu, gpu, i > 0);
    }
    const auto file = OpenStrobe(contents);
    return file ? std::string() : file.error().message;
  };
  EXPECT_EQ(error_with(2), "");
  EXPECT_THAT(error_with(4), HasSubstr("more stacks than a file of this size can hold"));
}

class RecordedGpu : public ::testing::TestWithParam<int> {};

// Whichever write it is that the file does not take.
TEST_P(RecordedGpu, MovesToMemoryWithTheSamples) {
  const int full_after = GetParam();
  std::atomic<bool> stop{false};
  Tables tables, gpu_tables;
  testing::MakeThread(tables, 1, "MainThread");
  GpuRecord record = MakeGpuExample(gpu_tables);
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
  for (int second = 1; second <= 3; ++second) {
    fill_disk();
    samples.push_back({.time_ns = second * 1'000'000'000LL,
                       .wall_ns = 1'000'000'000,
                       .stack = MakeStack(tables, {{"f", static_cast<uint32_t>(second)}})});
    ASSERT_TRUE(recorder.Append(tables, std::span(samples).last(1), {}));
    fill_disk();
    ++record.sums[0].count;
    ASSERT_TRUE(recorder.AppendGpu(gpu_tables, record));
  }
  fill_disk();
  ASSERT_TRUE(recorder.Finish(tables, {}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(recorder.whole());
  EXPECT_TRUE(stop);
  const auto read = StrobeFile::Open(recorder.TakeFd(), "test");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->cut_off(), "");
  EXPECT_EQ(testing::ReadSamples(**read), samples);
  EXPECT_EQ(GpuOf(**read), Canonical(record, gpu_tables));
}

INSTANTIATE_TEST_SUITE_P(AfterSteps, RecordedGpu, ::testing::Range(0, 8));

TEST(RecordedGpuAlone, MovesToMemory) {
  std::atomic<bool> stop{false};
  Tables gpu_tables;
  const GpuRecord record = MakeGpuExample(gpu_tables);
  ScopedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int file = fd.get();
  Recorder recorder(std::move(fd), "test", stop);
  ASSERT_TRUE(recorder.Begin({}));
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);
  ASSERT_TRUE(recorder.AppendGpu(gpu_tables, record));
  EXPECT_TRUE(stop);
  ASSERT_TRUE(recorder.Finish({}, {}));
  const auto read = StrobeFile::Open(recorder.TakeFd(), "test");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(GpuOf(**read), Canonical(record, gpu_tables));
}

}  // namespace
}  // namespace pystrobe::store
