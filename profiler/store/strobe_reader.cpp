// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/base/proc.h"
#include "profiler/model/gpu_translation.h"
#include "profiler/store/block.h"
#include "profiler/store/calls.h"
#include "profiler/store/definitions.h"
#include "profiler/store/facts.h"
#include "profiler/store/gpu_blocks.h"
#include "profiler/store/range_blocks.h"
#include "profiler/store/read_at.h"
#include "profiler/store/samples.h"
#include "profiler/store/strobe.h"

namespace pystrobe::store {
namespace {

/// Whole blocks of a file, from byte `begin` to byte `end`.
struct BlockRange {
  uint64_t begin = kFileHeaderSize;
  uint64_t end = kFileHeaderSize;
};

/// Where records of one type are.
struct RecordPlace {
  std::optional<uint64_t> begin;   ///< of one whose end has not come
  std::optional<BlockRange> last;  ///< the last whole one

  void Take(uint64_t block_begin, uint64_t block_end, bool is_last) {
    if (!begin) begin = block_begin;
    if (!is_last) return;
    last = BlockRange{*begin, block_end};
    begin.reset();
  }
};

struct Block {
  uint8_t type = 0;
  uint64_t begin = 0;  ///< of the block in the file
  uint64_t end = 0;
  ByteSpan payload;  ///< valid until the next Next()
};

/// Steps from block to block and checks each. Where it ends before the file does, or in the middle
/// of a block, damage() says why.
class BlockScanner {
 public:
  BlockScanner(int fd, const std::string& name, BlockRange range)
      : fd_(fd), name_(name), end_(range.end), offset_(range.begin) {}

  /// The next whole block; nothing at the end or at damage. Fails when the file cannot be read.
  Result<std::optional<Block>> Next();

  uint64_t offset() const { return offset_; }
  const std::string& damage() const { return damage_; }

 private:
  int fd_;
  const std::string& name_;
  uint64_t end_;
  uint64_t offset_;
  std::string damage_;
  Bytes buffer_;
};

Result<std::optional<Block>> BlockScanner::Next() {
  if (offset_ == end_) return std::nullopt;
  const uint64_t left = end_ - offset_;
  buffer_.resize(kBlockHeaderSize);
  uint64_t length = 0;
  if (left >= kBlockHeaderSize) {
    const auto got = ReadAt(fd_, offset_, buffer_, name_);
    if (!got) return std::unexpected(got.error());
    length = ParseBlockHeader(buffer_).length;
    if (length > kMaxPayload) {
      damage_ = fmt::format("damaged at byte {}: a block of {} bytes", offset_, length);
      return std::nullopt;
    }
  }
  const uint64_t size = kBlockHeaderSize + length;
  if (left < size) {
    damage_ =
        fmt::format("cut off at byte {}: {} bytes of an unfinished block are left", offset_, left);
    return std::nullopt;
  }
  buffer_.resize(static_cast<size_t>(size));
  const auto got = ReadAt(fd_, offset_, buffer_, name_);
  if (!got) return std::unexpected(got.error());
  if (*got < size) return Fail(ErrorCode::kUnreadable, "{} became shorter while read", name_);
  if (!ChecksumMatches(buffer_)) {
    damage_ = fmt::format("damaged at byte {}: the checksum of the block there is wrong", offset_);
    return std::nullopt;
  }
  Block block{.type = ParseBlockHeader(buffer_).type,
              .begin = offset_,
              .end = offset_ + size,
              .payload = ByteSpan(buffer_).subspan(kBlockHeaderSize)};
  offset_ = block.end;
  return block;
}

bool MayBeSkipped(uint8_t type) { return type >= 'a' && type <= 'z'; }

std::string NewerBlock(const Block& block) {
  return fmt::format("unknown block type {} at byte {}: written by a newer pystrobe", block.type,
                     block.begin);
}

/// The version of the format.
Result<uint32_t> CheckFileHeader(ByteSpan header, const std::string& name) {
  if (header.empty()) return Fail(ErrorCode::kCorrupt, "{} is empty", name);
  const size_t compared = std::min(header.size(), kMagic.size());
  if (!std::equal(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(compared),
                  kMagic.begin())) {
    return FailWithHint(ErrorCode::kCorrupt,
                        "Only .strobe files can be read back; record one with `-o NAME.strobe`.",
                        "{} is not a .strobe file", name);
  }
  if (header.size() < kFileHeaderSize) {
    return Fail(ErrorCode::kCorrupt, "{} was cut off before its first block", name);
  }
  const uint32_t version = ByteReader(header.subspan(kMagic.size())).U32();
  if (version == 0 || version > kVersion) {
    return FailWithHint(
        ErrorCode::kCorrupt, "Read it with the pystrobe that wrote it, or a newer one.",
        "{} is of format version {}, and this pystrobe reads up to {}", name, version, kVersion);
  }
  return version;
}

}  // namespace

class StrobeFile::Impl {
 public:
  Impl(ScopedFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Result<void> Load();
  Result<void> ForEachSample(FunctionRef<void(const Sample&)> visit) const;
  Result<void> ForEachCall(RecordingSource::CallVisitor visit) const;

  const Metadata& metadata() const { return metadata_; }
  const Tables& tables() const { return tables_; }
  const Quality& quality() const { return quality_; }
  const GpuRecord* gpu() const { return gpu_ ? &*gpu_ : nullptr; }
  const RangeRecord* ranges() const { return ranges_ ? &*ranges_ : nullptr; }
  const std::string& cut_off() const { return cut_off_; }

 private:
  Result<void> LoadHead(BlockScanner& scanner, BlockUnpacker& unpacker);
  /// Takes what comes after the head, up to the end or the first damage.
  Result<void> LoadBlocks(BlockScanner& scanner, BlockUnpacker& unpacker,
                          DefinitionDecoder& decoder);
  /// Decode the last whole record, once all other definitions are there; `left` for those of the
  /// record, and then what is left beside them.
  Result<void> LoadGpu(DefinitionLimits& left);
  Result<void> LoadRanges(DefinitionLimits left);
  /// Calls `decode` with the unpacked blocks of this type, of those in `range`.
  Result<void> ForEachBlock(BlockType type, BlockRange range,
                            FunctionRef<Result<void>(const BlockUnpacker&)> decode) const;
  BlockRange Taken() const { return {.end = end_}; }
  /// Takes a data or end block. Fails when it cannot be understood.
  Result<void> LoadBlock(const Block& block, BlockUnpacker& unpacker, DefinitionDecoder& decoder);
  /// Fails where all that is to be unpacked is more than can be in earnest.
  Result<void> CountUnpacked(const Block& block);

  ScopedFd fd_;
  std::string name_;
  uint32_t version_ = kVersion;
  Metadata metadata_;
  Tables tables_;
  Quality quality_;
  std::optional<GpuRecord> gpu_;
  std::optional<RangeRecord> ranges_;
  RecordPlace gpu_place_, ranges_place_;
  std::string cut_off_;
  uint64_t most_unpacked_ = 0;
  uint64_t unpacked_ = 0;  // what those blocks come to
  uint64_t end_ = 0;       // of the blocks that were taken
};

Result<void> StrobeFile::Impl::Load() {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) {
    return FailErrno(errno, ErrorCode::kUnreadable, "reading {}", name_);
  }
  if (!S_ISREG(status.st_mode)) {
    return FailWithHint(ErrorCode::kUnreadable, "Save it as a file first.",
                        "{} is not a regular file", name_);
  }
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  Bytes header(kFileHeaderSize);
  const auto got = ReadAt(fd_.get(), 0, header, name_);
  if (!got) return std::unexpected(got.error());
  header.resize(*got);
  const auto version = CheckFileHeader(header, name_);
  if (!version) return std::unexpected(version.error());
  version_ = *version;

  BlockScanner scanner(fd_.get(), name_, {.end = size});
  BlockUnpacker unpacker;
  if (auto head = LoadHead(scanner, unpacker); !head) return head;
  DefinitionDecoder decoder(LimitsFor(size));
  most_unpacked_ = MostUnpackedFor(size);
  end_ = scanner.offset();
  if (auto loaded = LoadBlocks(scanner, unpacker, decoder); !loaded) return loaded;
  DefinitionLimits left = decoder.Left(tables_);
  if (auto loaded = LoadGpu(left); !loaded) return loaded;
  return LoadRanges(left);
}

Result<void> StrobeFile::Impl::LoadBlocks(BlockScanner& scanner, BlockUnpacker& unpacker,
                                          DefinitionDecoder& decoder) {
  while (!quality_.complete) {
    const auto block = scanner.Next();
    if (!block) return std::unexpected(block.error());
    if (!*block) break;
    if (auto loaded = LoadBlock(**block, unpacker, decoder); !loaded) {
      cut_off_ = fmt::format("damaged at byte {}: {}", (*block)->begin, loaded.error().message);
      return {};
    }
    if (!cut_off_.empty()) return {};
    end_ = (*block)->end;
  }
  if (quality_.complete) return {};
  cut_off_ = scanner.damage().empty()
                 ? fmt::format("ends at byte {} without an end block", scanner.offset())
                 : scanner.damage();
  return {};
}

Result<void> StrobeFile::Impl::LoadHead(BlockScanner& scanner, BlockUnpacker& unpacker) {
  const auto block = scanner.Next();
  if (!block) return std::unexpected(block.error());
  if (!*block) {
    return Fail(ErrorCode::kCorrupt, "{}: no whole head ({})", name_,
                scanner.damage().empty() ? "nothing follows the version" : scanner.damage());
  }
  if ((*block)->type != static_cast<uint8_t>(BlockType::kHead)) {
    return Fail(ErrorCode::kCorrupt, "{}: the first block is not a head", name_);
  }
  if (auto done = unpacker.Unpack((*block)->payload); !done) {
    return Wrap(done.error(), "{}: damaged head", name_);
  }
  auto metadata = ParseMetadata(unpacker.column(0));
  if (!metadata) return Wrap(metadata.error(), "{}: damaged head", name_);
  metadata_ = std::move(*metadata);
  return {};
}

Result<void> StrobeFile::Impl::LoadBlock(const Block& block, BlockUnpacker& unpacker,
                                         DefinitionDecoder& decoder) {
  if (auto done = CountUnpacked(block); !done) return done;
  const auto is = [&block](BlockType type) { return block.type == static_cast<uint8_t>(type); };
  const bool end = is(BlockType::kEnd);
  if (!end && !is(BlockType::kData) && !is(BlockType::kGpu) && !is(BlockType::kRanges)) {
    if (!MayBeSkipped(block.type)) cut_off_ = NewerBlock(block);
    return {};
  }
  if (auto done = unpacker.Unpack(block.payload); !done) return done;
  if (is(BlockType::kGpu)) {
    gpu_place_.Take(block.begin, block.end, GpuDecoder::IsLast(unpacker));
    return {};
  }
  if (is(BlockType::kRanges)) {
    ranges_place_.Take(block.begin, block.end, RangeDecoder::IsLast(unpacker));
    return {};
  }
  if (auto done = decoder.Decode(unpacker, tables_); !done) return done;
  if (auto done = ParseQuality(unpacker.column(kQualityColumn), quality_); !done) return done;
  quality_.complete = end;
  return {};
}

Result<void> StrobeFile::Impl::LoadGpu(DefinitionLimits& left) {
  if (!gpu_place_.last) return {};
  GpuDecoder decoder(left);
  auto done =
      ForEachBlock(BlockType::kGpu, *gpu_place_.last,
                   [&decoder](const BlockUnpacker& block) { return decoder.Decode(block); });
  if (!done) return done;
  left = decoder.Left();
  gpu_ = TranslateGpu(decoder.TakeRecord(), decoder.tables(), tables_);
  return {};
}

Result<void> StrobeFile::Impl::LoadRanges(DefinitionLimits left) {
  if (!ranges_place_.last) return {};
  RangeDecoder decoder(left);
  auto done =
      ForEachBlock(BlockType::kRanges, *ranges_place_.last,
                   [&decoder](const BlockUnpacker& block) { return decoder.Decode(block); });
  if (done) ranges_ = TranslateRanges(decoder.TakeRecord(), decoder.tables(), tables_);
  return done;
}

Result<void> StrobeFile::Impl::CountUnpacked(const Block& block) {
  if (block.type == static_cast<uint8_t>(BlockType::kPadding)) return {};
  unpacked_ += std::min<uint64_t>(UnpackedSize(block.payload), kMaxPayload);
  if (unpacked_ <= most_unpacked_) return {};
  return Fail(ErrorCode::kCorrupt,
              "blocks of more than {} bytes, unpacked: more than a file of this size can hold",
              most_unpacked_);
}

Result<void> StrobeFile::Impl::ForEachSample(FunctionRef<void(const Sample&)> visit) const {
  SampleDecoder decoder(tables_, version_);
  return ForEachBlock(BlockType::kData, Taken(),
                      [&](const BlockUnpacker& block) { return decoder.Decode(block, visit); });
}

Result<void> StrobeFile::Impl::ForEachCall(RecordingSource::CallVisitor visit) const {
  CallDecoder decoder(tables_);
  return ForEachBlock(BlockType::kCalls, Taken(),
                      [&](const BlockUnpacker& block) { return decoder.Decode(block, visit); });
}

Result<void> StrobeFile::Impl::ForEachBlock(
    BlockType type, BlockRange range,
    FunctionRef<Result<void>(const BlockUnpacker&)> decode) const {
  if (!fd_.IsIntact()) {
    return Fail(ErrorCode::kUnreadable, "reading {}: the program has closed its file", name_);
  }
  BlockScanner scanner(fd_.get(), name_, range);
  BlockUnpacker unpacker;
  while (true) {
    const auto block = scanner.Next();
    if (!block) return std::unexpected(block.error());
    if (!*block) break;
    if ((*block)->type != static_cast<uint8_t>(type)) continue;
    auto done = unpacker.Unpack((*block)->payload);
    if (done) done = decode(unpacker);
    if (!done) return Wrap(done.error(), "{} is damaged at byte {}", name_, (*block)->begin);
  }
  if (scanner.offset() != range.end) {
    return Fail(ErrorCode::kUnreadable, "{} changed while it was read", name_);
  }
  return {};
}

StrobeFile::StrobeFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StrobeFile::~StrobeFile() = default;

Result<std::unique_ptr<StrobeFile>> StrobeFile::Open(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd) return std::unexpected(fd.error());
  return Open(*std::move(fd), path);
}

Result<std::unique_ptr<StrobeFile>> StrobeFile::Open(ScopedFd fd, std::string name) {
  auto impl = std::make_unique<Impl>(std::move(fd), std::move(name));
  if (auto loaded = impl->Load(); !loaded) return std::unexpected(loaded.error());
  return std::unique_ptr<StrobeFile>(new StrobeFile(std::move(impl)));
}

const Metadata& StrobeFile::metadata() const { return impl_->metadata(); }
const Tables& StrobeFile::tables() const { return impl_->tables(); }
const Quality& StrobeFile::quality() const { return impl_->quality(); }
const std::string& StrobeFile::cut_off() const { return impl_->cut_off(); }
Result<void> StrobeFile::ForEachSample(FunctionRef<void(const Sample&)> visit) const {
  return impl_->ForEachSample(visit);
}
Result<void> StrobeFile::ForEachCall(CallVisitor visit) const { return impl_->ForEachCall(visit); }
const GpuRecord* StrobeFile::gpu() const { return impl_->gpu(); }
const RangeRecord* StrobeFile::ranges() const { return impl_->ranges(); }

}  // namespace pystrobe::store
