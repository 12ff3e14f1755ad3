// SPDX-License-Identifier: Apache-2.0
//
// Columns into a sealed block and back: compression, checksum, limits. Knows nothing of what the
// columns mean. [one thread at a time]
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/store/bytes.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::store {

/// What a data block is made of: its columns' bytes, by Column.
using Columns = std::array<Bytes, kColumnCount>;

/// Makes blocks. Keeps the compressor's memory from one to the next.
class BlockPacker {
 public:
  BlockPacker();
  ~BlockPacker();
  BlockPacker(BlockPacker&&) = delete;

  /// The whole block, header included, ready to be written. Valid until the next call. Fails with
  /// kInvalidArgument when the columns exceed kMaxPayload. Calls, of which a program may make
  /// twenty millions a second, are packed in less time, and less densely.
  Result<ByteSpan> Pack(BlockType type, std::span<const Bytes> columns);

 private:
  Result<void> Compress(ByteSpan input, bool last);

  struct Context;
  std::unique_ptr<Context> context_;
  Bytes block_;
};

/// A block of type kPadding of `size` bytes in all, which are at least kBlockHeaderSize.
Bytes MakePadding(size_t size);

struct BlockHeader {
  uint32_t checksum = 0;
  uint32_t length = 0;
  uint8_t type = 0;
};

/// `bytes` holds kBlockHeaderSize of them.
BlockHeader ParseBlockHeader(ByteSpan bytes);

/// Is this the checksum of the block? `block` is header and payload.
bool ChecksumMatches(ByteSpan block);

/// How many bytes a payload says it comes to, unpacked; 0 where it does not say.
uint64_t UnpackedSize(ByteSpan payload);

/// Opens blocks. Keeps its buffers from one to the next.
class BlockUnpacker {
 public:
  BlockUnpacker();
  ~BlockUnpacker();
  BlockUnpacker(BlockUnpacker&&) = delete;

  /// Unpacks a payload; columns() then gives its parts, until the next call. Fails with kCorrupt,
  /// saying what is wrong; allocates at most kMaxPayload.
  Result<void> Unpack(ByteSpan payload);

  /// Empty for a column that the block lacks.
  ByteSpan column(size_t index) const {
    return index < columns_.size() ? columns_[index] : ByteSpan{};
  }

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  Bytes buffer_;
  std::vector<ByteSpan> columns_;
};

}  // namespace pystrobe::store
