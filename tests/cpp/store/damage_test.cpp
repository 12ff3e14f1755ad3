// SPDX-License-Identifier: Apache-2.0
//
// Files that were cut off, damaged or never were .strobe files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "profiler/store/block.h"
#include "profiler/store/calls.h"
#include "profiler/store/facts.h"
#include "profiler/store/strobe.h"
#include "profiler/store/strobe_format.h"
#include "tests/cpp/support/many_stacks.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/random_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::OpenStrobe;
using testing::RandomRecording;
using testing::ReadSamples;
using testing::ToStrobe;

/// Where each block begins, and where the last one ends.
std::vector<size_t> BlockBorders(std::string_view file) {
  std::vector<size_t> borders = {kFileHeaderSize};
  while (borders.back() < file.size()) {
    const auto* begin = reinterpret_cast<const uint8_t*>(file.data() + borders.back());
    const BlockHeader header = ParseBlockHeader(ByteSpan(begin, kBlockHeaderSize));
    borders.push_back(borders.back() + kBlockHeaderSize + header.length);
  }
  EXPECT_EQ(borders.back(), file.size());
  return borders;
}

std::string SmallFile() {
  return ToStrobe(RandomRecording(3, {.threads = 3, .appends = 4, .samples_per_append = 25}));
}

/// A block with a right checksum around any payload.
std::string RawBlock(char type, std::string_view payload) {
  Bytes header;
  AppendU32(header, 0);
  AppendU32(header, static_cast<uint32_t>(payload.size()));
  AppendByte(header, static_cast<uint8_t>(type));
  return testing::WithChecksum(std::string(header.begin(), header.end()) + std::string(payload));
}

std::string Packed(BlockType type, std::span<const Bytes> columns) {
  BlockPacker packer;
  const ByteSpan block = packer.Pack(type, columns).value();
  return {block.begin(), block.end()};
}

std::string FileHeader(uint32_t version = kVersion) {
  Bytes header(kMagic.begin(), kMagic.end());
  AppendU32(header, version);
  return {header.begin(), header.end()};
}

std::string Head() {
  Bytes column;
  AppendMetadata(column, {});
  return FileHeader() + Packed(BlockType::kHead, std::span(&column, 1));
}

/// Opening fails and says so.
std::string OpeningError(std::string_view contents) {
  const auto file = OpenStrobe(contents);
  EXPECT_FALSE(file.has_value());
  if (file) return "";
  EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(file.error().message, HasSubstr("test.strobe"));
  return file.error().message;
}

TEST(Damage, AFileCutAtAnyByteGivesItsWholeBlocks) {
  const std::string whole = SmallFile();
  const std::vector<size_t> borders = BlockBorders(whole);
  ASSERT_GE(borders.size(), 6U);
  const std::vector<Sample> samples = ReadSamples(**OpenStrobe(whole));
  size_t last_count = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string_view cut = std::string_view(whole).substr(0, size);
    if (size < borders[1]) {
      OpeningError(cut);
      continue;
    }
    const auto file = OpenStrobe(cut);
    ASSERT_TRUE(file.has_value()) << "cut to " << size << ": " << file.error().message;
    EXPECT_FALSE((*file)->quality().complete);
    EXPECT_THAT((*file)->cut_off(), Not(IsEmpty()));
    const std::vector<Sample> got = ReadSamples(**file);
    ASSERT_LE(got.size(), samples.size());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), samples.begin()));
    const bool at_border = std::find(borders.begin(), borders.end(), size) != borders.end();
    if (at_border && size != borders[1]) {
      EXPECT_TRUE(got.size() > last_count || size == borders[borders.size() - 2]);
    } else if (size != borders[1]) {
      EXPECT_EQ(got.size(), last_count);
    }
    last_count = got.size();
  }
  EXPECT_EQ(last_count, samples.size()) << "only the end block was missing";
}

TEST(Damage, AChangedByteIsNoticedWhereverItIs) {
  const std::string whole = SmallFile();
  const std::vector<size_t> borders = BlockBorders(whole);
  const std::vector<Sample> samples = ReadSamples(**OpenStrobe(whole));
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char bit : {'\x01', '\x80'}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ bit);
      const auto file = OpenStrobe(damaged);
      if (i < borders[1]) {
        ASSERT_FALSE(file.has_value()) << "byte " << i;
        continue;
      }
      ASSERT_TRUE(file.has_value()) << "byte " << i << ": " << file.error().message;
      EXPECT_FALSE((*file)->quality().complete) << "byte " << i;
      const size_t block = *(std::upper_bound(borders.begin(), borders.end(), i) - 1);
      EXPECT_THAT((*file)->cut_off(), HasSubstr(fmt::format("at byte {}:", block)));
      const std::vector<Sample> got = ReadSamples(**file);
      ASSERT_LE(got.size(), samples.size());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), samples.begin()));
    }
  }
}

TEST(Damage, ForeignFilesAreNamedAsSuch) {
  EXPECT_THAT(OpeningError(""), HasSubstr("is empty"));
  EXPECT_THAT(OpeningError("{\"json\": 1}"), HasSubstr("not a .strobe file"));
  EXPECT_THAT(OpeningError(std::string(1000, '\0')), HasSubstr("not a .strobe file"));
  EXPECT_THAT(OpeningError("\x89STROBE\r\n and more"), HasSubstr("not a .strobe file"));
  EXPECT_THAT(OpeningError(FileHeader().substr(0, 9)), HasSubstr("cut off"));
  EXPECT_THAT(OpeningError(FileHeader()), HasSubstr("head"));
}

TEST(Damage, NewerVersionsAreRefused) {
  std::string newer = SmallFile();
  newer[kMagic.size()] = 3;
  EXPECT_THAT(OpeningError(newer), HasSubstr("version 3, and this pystrobe reads up to 2"));
}

TEST(Damage, WhatIsNoFileIsRefused) {
  const auto missing = StrobeFile::Open("/nonexistent/x.strobe");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  const auto folder = StrobeFile::Open("/");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::kUnreadable);
  const auto device = StrobeFile::Open("/dev/null");
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kUnreadable);
}

TEST(Damage, HugeLengthsAreRefusedBeforeTheyAreAllocated) {
  Bytes header;
  AppendU32(header, 0);
  AppendU32(header, 0xffffffff);
  AppendByte(header, 'D');
  std::string file = Head();
  file.append(header.begin(), header.end());
  const auto opened = OpenStrobe(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_THAT((*opened)->cut_off(), HasSubstr("a block of 4294967295 bytes"));

  // A zstd frame header (RFC 8878) that claims 1 TiB: single segment, 8 bytes of content size.
  const std::string_view frame("\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\1\0\0\1\0\0", 16);
  const auto bomb = OpenStrobe(Head() + RawBlock('D', frame));
  ASSERT_TRUE(bomb.has_value());
  EXPECT_THAT((*bomb)->cut_off(), HasSubstr("a block that claims 1099511627776 bytes"));
}

TEST(Damage, UnpackedDefinitionsAreLimitedByTheSizeOfTheFile) {
  // A million stacks in one block, again and again: a few hundred bytes each.
  std::string file = Head();
  Columns columns = testing::ManyStacks();
  AppendQuality(columns[kQualityColumn], {}, {});
  file += Packed(BlockType::kData, columns);
  for (Column column : {kStringLengths, kStringBytes, kFunctions, kFrames, kCalleeNew}) {
    columns[column].clear();
  }
  columns[kCalleeRanks].assign(1'000'000, 0);
  const std::string again = Packed(BlockType::kData, columns);
  for (int i = 0; i < 20; ++i) file += again;
  const auto opened = OpenStrobe(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_GT((*opened)->tables().stack_count(), 4'000'000U);
  EXPECT_LE((*opened)->tables().stack_count(), LimitsFor(file.size()).definitions);
  EXPECT_LT((*opened)->tables().stack_count(), 7'000'000U);
  EXPECT_THAT((*opened)->cut_off(), HasSubstr("more stacks than a file of this size can hold"));
}

TEST(Damage, NoFileMayDefineWhatNoMemoryHolds) {
  for (const uint64_t size : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_LE(LimitsFor(size).definitions, uint64_t{1} << 25);
    EXPECT_LE(LimitsFor(size).string_bytes, uint64_t{1} << 30);
  }
  EXPECT_LT(LimitsFor(0).definitions, uint64_t{1} << 23);
}

TEST(Damage, AFileOfTheSizeForItsDefinitionsIsTaken) {
  for (uint64_t count = 1; count <= kMostLimits.string_bytes; count = count * 5 + 1) {
    const DefinitionLimits taken{.definitions = std::min(count, kMostLimits.definitions),
                                 .string_bytes = count};
    const uint64_t size = SizeFor(taken, 0);
    EXPECT_GE(LimitsFor(size).definitions, taken.definitions);
    EXPECT_GE(LimitsFor(size).string_bytes, taken.string_bytes);
    if (size == 0) continue;
    const DefinitionLimits smaller = LimitsFor(size - 1);
    EXPECT_TRUE(smaller.definitions < taken.definitions ||
                smaller.string_bytes < taken.string_bytes);
  }
  EXPECT_GE(LimitsFor(SizeFor(kMostLimits, 0)).string_bytes, kMostLimits.string_bytes);
}

TEST(Damage, WhatIsToBeUnpackedIsLimitedByTheSizeOfTheFile) {
  // A column that a later version may have.
  std::vector<Bytes> columns(kColumnCount + 1);
  AppendQuality(columns[kQualityColumn], {}, {});
  columns[kColumnCount].assign(kMaxPayload - 1000, 0);
  const std::string block = Packed(BlockType::kData, columns);
  std::string file = Head();
  for (int i = 0; i < 100; ++i) file += block;
  const auto opened = OpenStrobe(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_THAT((*opened)->cut_off(), HasSubstr("more than a file of this size can hold"));
}

TEST(Damage, ABlockOfCallsHasNoMoreThanAWriterPuts) {
  Tables tables;
  const StackId stack = testing::MakeStack(tables, {{"f"}});
  const ThreadIndex thread = testing::MakeThread(tables, 1, "MainThread");
  const auto is_read = [&](size_t pairs) {
    std::vector<CallEvent> calls;
    for (size_t i = 0; i < pairs; ++i) {
      calls.push_back({static_cast<int64_t>(i), stack});
      calls.push_back({static_cast<int64_t>(i), kEmptyStack});
    }
    CallColumns columns;
    CallEncoder().Encode(thread, calls, tables, columns);
    BlockPacker packer;
    const auto block = packer.Pack(BlockType::kCalls, columns);
    BlockUnpacker unpacker;
    EXPECT_TRUE(unpacker.Unpack(block->subspan(kBlockHeaderSize)));
    const auto ignore = [](ThreadIndex, std::span<const CallEvent>) {};
    return CallDecoder(tables).Decode(unpacker, ignore).has_value();
  };
  EXPECT_TRUE(is_read(kMaxCallEventsPerBlock / 2));
  EXPECT_FALSE(is_read(kMaxCallEventsPerBlock / 2 + 1));
}

// Nothing real is packed more densely: a recursion as deep as Python allows by default, entered
// from two thousand places.
TEST(Damage, DeepRecursionsAreNoDamage) {
  constexpr uint32_t kPlaces = 2000;
  constexpr int kDepth = 1000;
  Tables tables;
  std::vector<Sample> samples;
  const FunctionId function = tables.Intern(Function{tables.Intern("f"), kEmptyString, 1});
  const FrameId call = tables.Intern(Frame{function, 2});
  const ThreadIndex thread = testing::MakeThread(tables, 1, "MainThread");
  for (uint32_t place = 0; place < kPlaces; ++place) {
    StackId stack = tables.Push(kEmptyStack, tables.Intern(Frame{function, 10 + place}));
    for (int depth = 0; depth < kDepth; ++depth) stack = tables.Push(stack, call);
    samples.push_back({.time_ns = place * 1'000'000, .thread = thread, .stack = stack});
  }
  StrobeWriter writer(testing::MakeFile(""), "test.strobe");
  ASSERT_TRUE(writer.Begin({}));
  ASSERT_TRUE(writer.Append(tables, samples, {}));
  ASSERT_TRUE(writer.Finish(tables, {}));
  const std::string file = testing::Contents(writer.TakeFd());
  const auto opened = OpenStrobe(file);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ((*opened)->cut_off(), "");
  EXPECT_EQ((*opened)->tables().stack_count(), tables.stack_count());
  EXPECT_GT(tables.stack_count(), 90 * file.size());
}

TEST(Damage, TimesHeldOfNoBucketThatThereIsAreRefused) {
  Quality quality{.limited_ns = 0};
  Bytes none_held;
  AppendQuality(none_held, quality, {});
  for (const size_t bucket :
       {DurationHistogram::kMostBuckets - 1, DurationHistogram::kMostBuckets}) {
    Bytes bytes = none_held;
    AppendVarint(bytes, 2);
    for (const size_t skipped : {size_t{3}, bucket - 4}) {
      AppendVarint(bytes, skipped);
      AppendVarint(bytes, 7);
    }
    Quality read;
    const auto done = ParseQuality(bytes, read);
    EXPECT_EQ(done.has_value(), bucket < DurationHistogram::kMostBuckets);
    EXPECT_EQ(read.held_each.count(), done ? 14U : 0U);
  }
}

TEST(Damage, UnknownBlocksAreSkippedOrStopTheReader) {
  const std::string whole = SmallFile();
  const std::vector<size_t> borders = BlockBorders(whole);
  const std::string before = whole.substr(0, borders[2]);
  const std::string after = whole.substr(borders[2]);

  const auto skipped = OpenStrobe(before + RawBlock('x', "anything") + after);
  ASSERT_TRUE(skipped.has_value());
  EXPECT_EQ((*skipped)->cut_off(), "");
  EXPECT_EQ(ReadSamples(**skipped), ReadSamples(**OpenStrobe(whole)));

  const auto stopped = OpenStrobe(before + RawBlock('X', "anything") + after);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_THAT((*stopped)->cut_off(), HasSubstr("written by a newer pystrobe"));
  EXPECT_EQ(ReadSamples(**stopped), ReadSamples(**OpenStrobe(before)));
}

}  // namespace
}  // namespace pystrobe::store
