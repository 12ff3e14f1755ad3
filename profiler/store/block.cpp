// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/block.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "profiler/base/no_memory.h"
#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

// Measured on recordings of real programs. Short matches cost more than entropy coding of the noise
// they are found in; with those ruled out, a higher level gains 2 % for twice the work. That is
// half a millisecond for two seconds of samples, but too much where a program defines a lot at
// once.
constexpr int kCompressionLevel = 6, kLevelOfFew = 14;
constexpr size_t kFew = size_t{64} << 10;
constexpr int kMinMatch = 7;
// Of calls, which come as fast as the program makes them.
constexpr int kQuickLevel = 1;

int LevelFor(BlockType type, size_t size) {
  if (type == BlockType::kCalls) return kQuickLevel;
  return size <= kFew ? kLevelOfFew : kCompressionLevel;
}

// A column starts a zstd block of its own, with an entropy table of its own, unless it and what is
// before it are so small that the table would cost more than it saves.
constexpr size_t kOwnTable = 256;

constexpr size_t kMaxColumns = 256;

uint32_t Checksum(ByteSpan bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

void PutU32(Bytes& bytes, size_t offset, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[offset + i] = static_cast<uint8_t>(value >> 8 * i);
}

void PutHeader(Bytes& block, BlockType type) {
  block[8] = static_cast<uint8_t>(type);
  PutU32(block, 4, static_cast<uint32_t>(block.size() - kBlockHeaderSize));
  PutU32(block, 0, Checksum(ByteSpan(block).subspan(4)));
}

template <typename ZstdContext>
ZstdContext* Allocated(ZstdContext* context) {
  if (context == nullptr) FailToAllocate();
  return context;
}

/// A result of zstd; contexts allocate when they are used, too.
bool IsError(size_t result) {
  if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) FailToAllocate();
  return ZSTD_isError(result) != 0;
}

}  // namespace

struct BlockPacker::Context {
  ZSTD_CCtx* zstd = Allocated(ZSTD_createCCtx());
  ~Context() { ZSTD_freeCCtx(zstd); }
};

BlockPacker::BlockPacker() : context_(std::make_unique<Context>()) {}
BlockPacker::~BlockPacker() = default;

Result<ByteSpan> BlockPacker::Pack(BlockType type, std::span<const Bytes> columns) {
  Bytes table;
  AppendVarint(table, columns.size());
  size_t size = 0;
  for (const Bytes& column : columns) {
    AppendVarint(table, column.size());
    size += column.size();
  }
  size += table.size();
  if (size > kMaxPayload) {
    return Fail(ErrorCode::kInvalidArgument, "a block of {} bytes is over the limit of {}", size,
                kMaxPayload);
  }
  ZSTD_CCtx_reset(context_->zstd, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_compressionLevel, LevelFor(type, size));
  ZSTD_CCtx_setParameter(context_->zstd, ZSTD_c_minMatch, kMinMatch);
  ZSTD_CCtx_setPledgedSrcSize(context_->zstd, size);

  block_.assign(kBlockHeaderSize, 0);
  Bytes pending = std::move(table);
  for (const Bytes& column : columns) {
    if (column.empty()) continue;
    if (pending.size() >= kOwnTable || column.size() >= kOwnTable) {
      if (auto done = Compress(pending, false); !done) return std::unexpected(done.error());
      pending.clear();
    }
    pending.insert(pending.end(), column.begin(), column.end());
  }
  if (auto done = Compress(pending, true); !done) return std::unexpected(done.error());

  PutHeader(block_, type);
  return ByteSpan(block_);
}

Bytes MakePadding(size_t size) {
  Bytes block(size);
  PutHeader(block, BlockType::kPadding);
  return block;
}

Result<void> BlockPacker::Compress(ByteSpan input, bool last) {
  ZSTD_inBuffer in{input.data(), input.size(), 0};
  const ZSTD_EndDirective directive = last ? ZSTD_e_end : ZSTD_e_flush;
  for (;;) {
    const size_t begin = block_.size();
    block_.resize(begin + ZSTD_compressBound(input.size()) + 64);
    ZSTD_outBuffer out{block_.data(), block_.size(), begin};
    const size_t left = ZSTD_compressStream2(context_->zstd, &out, &in, directive);
    block_.resize(out.pos);
    if (IsError(left)) {
      return Fail(ErrorCode::kIo, "compressing a block: {}", ZSTD_getErrorName(left));
    }
    if (left == 0) return {};
  }
}

BlockHeader ParseBlockHeader(ByteSpan bytes) {
  ByteReader reader(bytes);
  BlockHeader header;
  header.checksum = reader.U32();
  header.length = reader.U32();
  header.type = reader.Byte();
  return header;
}

bool ChecksumMatches(ByteSpan block) {
  return ParseBlockHeader(block).checksum == Checksum(block.subspan(4));
}

uint64_t UnpackedSize(ByteSpan payload) {
  const unsigned long long size = ZSTD_getFrameContentSize(payload.data(), payload.size());
  return size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ? 0 : size;
}

struct BlockUnpacker::Context {
  ZSTD_DCtx* zstd = Allocated(ZSTD_createDCtx());
  ~Context() { ZSTD_freeDCtx(zstd); }
};

BlockUnpacker::BlockUnpacker() : context_(std::make_unique<Context>()) {}
BlockUnpacker::~BlockUnpacker() = default;

Result<void> BlockUnpacker::Unpack(ByteSpan payload) {
  columns_.clear();
  const unsigned long long size = ZSTD_getFrameContentSize(payload.data(), payload.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return Corrupt("a block that is no zstd frame with a size");
  }
  if (size > kMaxPayload) {
    return Fail(ErrorCode::kCorrupt, "a block that claims {} bytes unpacked", size);
  }
  // One frame exactly: ZSTD_decompress would take several.
  if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
    return Corrupt("a block whose zstd frame does not fill it");
  }
  buffer_.resize(static_cast<size_t>(size));
  const size_t got = ZSTD_decompressDCtx(context_->zstd, buffer_.data(), buffer_.size(),
                                         payload.data(), payload.size());
  if (IsError(got)) {
    return Fail(ErrorCode::kCorrupt, "a block that zstd refuses ({})", ZSTD_getErrorName(got));
  }
  if (got != size) return Corrupt("a block shorter than it says");

  ByteReader reader(buffer_);
  const uint64_t count = reader.Varint();
  if (count > kMaxColumns) return Corrupt("a block with too many columns");
  std::vector<uint64_t> sizes(static_cast<size_t>(count));
  for (uint64_t& column : sizes) column = reader.Varint();
  for (const uint64_t column : sizes) columns_.push_back(reader.Take(column));
  if (!reader.finished()) {
    columns_.clear();
    return Corrupt("a block whose columns do not fill it");
  }
  return {};
}

}  // namespace pystrobe::store
