// SPDX-License-Identifier: Apache-2.0
//
// The layout of a .strobe file, version 1. docs/format.md tells it at more length. All integers are
// little-endian. `varint` is LEB128 of at most 64 bits; `zigzag` maps 0, -1, 1, -2 ... to 0, 1, 2,
// 3 ... and writes a varint.
//
//   file   := magic[8] version:u32 block*
//   block  := crc:u32 length:u32 type:u8 payload[length]     crc32 (zlib's) of all that follows it
//   payload:= one zstd frame, its content size in the header, of
//             columns:varint, size:varint for each column, then the columns one after another
//
//   type 'H'  head, the first block, once: the Metadata in one column
//   type 'D'  data: about a second of definitions, samples and quality, in the columns below
//   type 'E'  end, the last block: the final Quality, in column kQualityColumn
//   others    lower case: skipped; upper case: the reader stops, the file is newer than it
//
// A file is read from its beginning to its first damaged or missing block; every block builds on
// those before it. Ids are given in order of definition: string 0 is "", stack 0 the empty stack.
//
// Definitions
//   kStringLengths   varint for each new string
//   kStringBytes     their UTF-8 bytes
//   kFunctions       for each: zigzag name, file, first_line, each minus the function before's
//   kFrames          for each: zigzag function minus the frame before's, zigzag line minus
//                    the function's first_line
//   kParentLevels    u8 for each new stack s: its parent is the stack so many levels above s-1
//                    (0: s-1 itself); 255: see the next column
//   kParentFar       varint s - parent
//   kCalleeRanks     u8 for each new stack: place of its frame in the recency list of the frame of
//                    its parent, most recent first; 255: not in the list, see the next column
//   kCalleeNew       zigzag frame minus the frame before in this column
//   kThreads         for each new or renamed: varint index, tid, interpreter, name
//
// Samples, grouped by thread, in time order within each
//   kGroups          for each thread with samples: varint index minus the group before's (the
//   first:
//                    index), varint number of samples
//   kTimeLow, kTimeHigh   time since the thread's sample before, in us: low byte, varint of the
//   rest kWallExceptions  where wall_us differs from that: varint samples skipped, zigzag
//   difference kCpuLow, kCpuHigh     zigzag of cpu_us minus (kSampleOnCpu ? wall_us : 0): low byte,
//   rest kFlagRuns        u8 flags, varint run length kCountExceptions where count is not 1: varint
//   samples skipped, zigzag count - 1 kStackRanks      u8: place in the recency list of the file,
//   most recent first;
//                    254: first use of a stack, 255: a stack no longer in the list
//   kStackIds        varint for each 254: stack minus the highest used before, less one;
//                    for each 255: highest used before minus stack
//
// Times are rounded so that sums are exact: see SampleEncoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pystrobe::store {

/// First byte not ASCII, last a newline: a file mangled by a text-mode copy does not match.
inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'S', 'T', 'R', 'O', 'B', 'E', '\n'};
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kFileHeaderSize = kMagic.size() + 4;
inline constexpr size_t kBlockHeaderSize = 9;

enum class BlockType : uint8_t { kHead = 'H', kData = 'D', kEnd = 'E' };

enum Column : uint8_t {
  kQualityColumn,  ///< of data and end blocks: see AppendQuality()
  kStringLengths,
  kStringBytes,
  kFunctions,
  kFrames,
  kParentLevels,
  kParentFar,
  kCalleeRanks,
  kCalleeNew,
  kThreads,
  kGroups,
  kTimeLow,
  kTimeHigh,
  kWallExceptions,
  kCpuLow,
  kCpuHigh,
  kFlagRuns,
  kCountExceptions,
  kStackRanks,
  kStackIds,
  kColumnCount,
};

/// Values of kParentLevels and kCalleeRanks, and of kStackRanks, that are no level or rank.
inline constexpr uint8_t kFar = 255;
inline constexpr uint8_t kFirstUse = 254;
/// Capacity of the recency lists: of callees of one frame, and of stacks.
inline constexpr size_t kCalleeListSize = 64;
inline constexpr size_t kStackListSize = 254;

/// Limits that a writer keeps and a reader checks before it allocates.
inline constexpr size_t kMaxPayload = size_t{16} << 20;  ///< of a block, packed or unpacked
inline constexpr size_t kMaxSamplesPerBlock = 1 << 14;
/// Definitions a reader takes: this many of each kind (bytes, for strings), and so many more for
/// each byte of the file.
inline constexpr uint64_t kFreeDefinitions = uint64_t{1} << 20;
inline constexpr uint64_t kDefinitionsPerByte = 1024;

}  // namespace pystrobe::store
