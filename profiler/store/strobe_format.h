// SPDX-License-Identifier: Apache-2.0
//
// The layout of a .strobe file, version 2; docs/format.md tells it at more length. Integers are
// little-endian. A varint is LEB128 of at most 64 bits; a zigzag is a varint that counts 0, -1, 1,
// -2 ... as 0, 1, 2, 3 ...
//
//   file    := magic[8] version:u32 block*
//   block   := crc:u32 length:u32 type:u8 payload[length]    crc: crc32 (zlib's) of what follows it
//   payload := one zstd frame that tells its content size, of
//              columns:varint, size:varint for each column, then the columns one after another
//
//   type 'H'  head: the first block, once; the Metadata in one column
//   type 'D'  data: some two seconds of definitions, samples and quality, in the columns below
//   type 'c'  calls: of a timeline, in columns told below
//   type 'g'  what a GPU did: one or more blocks are a record, which is self-contained
//   type 'n'  ranges that a program named: one or more blocks are a record, as of a GPU
//   type 'p'  padding: zeros, which make the file as large as its definitions want it: LimitsFor()
//   type 'E'  end: the last block; the final Quality, in its column
//   others    lower case: skipped; upper case: the reader stops, the file is newer than it
//
// A file is read from its beginning to its first damaged or missing block, and a block builds on
// those before it: "the last" in this text is the last of the file, not of the block.
// Ids count up in order of definition; string 0 is "" and stack 0 the empty stack.
//
// Definitions
//   kStringLengths   for each new string: varint
//   kStringBytes     UTF-8, one after another
//   kFunctions       for each new function: zigzag name, file and first_line, each minus the last
//                    function's
//   kNativeFunctions where a new function is machine code: varint functions skipped since the last
//                    such of this block
//   kFrames          for each new frame: zigzag function minus the last frame's; zigzag line minus
//                    the function's first_line
//   kParentLevels    for each new stack s: u8, its parent is so many levels above s-1, 0 being s-1
//                    itself; 255: the distance is in kParentFar
//   kParentFar       varint s minus parent
//   kCalleeRanks     for each new stack: u8, the place of its frame in the recency list that
//                    belongs to the frame of its parent; 255: not there, the frame is in kCalleeNew
//   kCalleeNew       zigzag frame minus the last one in this column
//   kThreads         for each new or renamed thread: varint index, tid, interpreter, name
//
// Samples, grouped by thread, ordered by time within a group
//   kGroups          for each thread seen: varint index minus the last of this block, or the index
//                    itself; varint number of samples
//   kTimeLow         u8 and
//   kTimeHigh        varint: low byte and rest of the zigzag number for time_us minus the first
//                    deadline after the thread's last sample, as DueTimes tells it (version 1: of
//                    the us since that sample)
//   kWallExceptions  where wall_us is not the us since the thread's last sample: varint samples
//                    skipped, zigzag difference
//   kCpuLow          u8 and
//   kCpuHigh         varint: low byte and rest of the zigzag number for
//                    cpu_us - (flags & kSampleOnCpu ? wall_us : 0)
//   kFlagRuns        u8 flags, varint length of the run
//   kCountExceptions where count is not 1: varint samples skipped, zigzag count - 1
//   kStackRanks      u8: the place of the stack in the recency list of the file; or
//                    253: the end of the chain after the highest stack used so far;
//                    254: above that stack; 255: that stack or below it. See kStackIds
//   kStackIds        for each 254: varint stack minus highest, less one;
//                    for each 255: varint highest minus stack
//   kDeadlines       for each new series of deadlines: varint last_ns, period_ns, state of its
//                    DeadlineSeries
//
// Calls, of a thread as they came, threads mixed
//   kCallGroups      for each time that a thread comes up: varint index, varint number of events
//   kCallMoves       for each event: u8 0: back to the caller; 1: the stack that was entered last
//                    from the thread's stack, by any thread; 2: another one, in kCallStacks
//   kCallStacks      zigzag stack minus the thread's stack
//   kCallTimes       for each event: varint ns since the thread's last one; a thread begins at 0,
//                    in stack 0
//
// A GPU's work: definitions in the columns of data blocks, their ids and lists those of the record
// alone, and rows, which build on definitions and kernels up to this block
//   kGpuQuality      in the last block of a record, and no other: varint for each integer of
//                    GpuQuality in the order of their declaration; varint source, a string; varint
//                    spans lost, captured, of_graphs, launches_only
//   kGpuDevices      varint number, name, multiprocessors
//   kGpuKernels      u8 kind; varint name, short name; block and cluster, each three varints;
//                    varint registers, static and dynamic shared memory
//   kGpuSums         varint kernel, device, stream, count, untimed, total_ns, min_ns, max_ns,
//                    bytes; last grid, three varints; varint advice, a string; varint, whose bit i
//                    says that bucket i is not 0; varint for each such bucket
//   kGpuStacks       for each sum: zigzag stack minus the last sum's
//   kGpuOccupancies  varint sum, counted in the record; varint blocks; theoretical, waves and tail
//                    efficiency as AppendDouble() has them
//   kGpuSpanSums     for each work by itself: varint sum
//   kGpuSpanBegins   zigzag begin_ns minus the end of the span before
//   kGpuSpanTimes    zigzag duration minus that of the last span of the same sum; where the sum is
//                    of copies or sets, zigzag bytes minus those of that span
//   kGpuSpanLaunches zigzag launch_ns minus the last one that is not 0
//   kGpuSpanThreads  zigzag tid minus that of the span before
//   kGpuUses         for each device that was used: varint number, busy_ns, idle_ns
//   kGpuIdles        varint device; u8 cause; from and to, each zigzag stack minus the same of the
//                    last one; varint count, total_ns, max_ns
//   kGpuWaits        zigzag stack minus the last one's; varint count, total_ns, max_ns
//   kGpuGaps         varint idle; zigzag begin minus the last one's end; varint length; zigzag tid
//                    minus the last one's
//
// Ranges: strings in the columns of data blocks, their ids those of the record alone, and rows
//   kRangeQuality    in the last block of a record, and no other: varint spans lost, overflowed
//   kRangeRows       varint its number minus that of its parent, 0: it has none; varint name and
//                    domain, strings; varint count, host_ns
//   kRangeStreams    zigzag range minus that of the row before; varint device, stream, instances,
//                    span_ns, busy_ns, works
//   kRangeSpans      for each time that one was open: varint range
//   kRangeSpanEnds   zigzag end_ns minus that of the span before
//   kRangeSpanTimes  zigzag duration minus that of the last span of the same range
//   kRangeSpanThreads  zigzag tid minus that of the span before
//
// A recency list has the last distinct values used, most recent first, at most kCalleeListSize or
// kStackListSize of them. Using a value, in the list or not, moves it to the front.
//
// The chain after stack h is h+1, h+2 ... as long as each is the parent of the next, as far as
// stacks are defined by the end of this block. It is what one new stack brings, so its end is the
// stack most likely to be used next. Chains of more than kMaxChain are not referred to.
//
// Times are rounded so that sums are exact: see SampleEncoder.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pystrobe::store {

/// First byte not ASCII, last a newline: a file mangled by a text-mode copy does not match.
inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'S', 'T', 'R', 'O', 'B', 'E', '\n'};
inline constexpr uint32_t kVersion = 2;  ///< written; all from 1 on are read
inline constexpr size_t kFileHeaderSize = kMagic.size() + 4;
inline constexpr size_t kBlockHeaderSize = 9;

enum class BlockType : uint8_t {
  kHead = 'H',
  kData = 'D',
  kCalls = 'c',
  kGpu = 'g',
  kRanges = 'n',
  kPadding = 'p',
  kEnd = 'E',
};

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
  kDeadlines,
  kNativeFunctions,
};

enum CallColumn : uint8_t {
  kCallGroups,
  kCallMoves,
  kCallStacks,
  kCallTimes,
  kCallColumnCount,
};

/// Of blocks of type kGpu, beside those of definitions: in the places of what those do not have,
/// and behind them all.
enum GpuColumn : uint8_t {
  kGpuQuality = kQualityColumn,
  kGpuDevices = kGroups,
  kGpuKernels,
  kGpuSums,
  kGpuStacks,
  kGpuOccupancies,
  kGpuSpanSums,
  kGpuSpanBegins,
  kGpuSpanTimes,
  kGpuSpanLaunches,
  kGpuSpanThreads,
  kGpuUses = kNativeFunctions + 1,
  kGpuIdles,
  kGpuWaits,
  kGpuGaps,
  kColumnCount,
};

/// Of blocks of type kRanges, as GpuColumn.
enum RangeColumn : uint8_t {
  kRangeQuality = kQualityColumn,
  kRangeRows = kGroups,
  kRangeStreams,
  kRangeSpans,
  kRangeSpanEnds,
  kRangeSpanTimes,
  kRangeSpanThreads,
};

/// Values of kCallMoves.
inline constexpr uint8_t kCallReturns = 0;
inline constexpr uint8_t kCallsAgain = 1;
inline constexpr uint8_t kCallsOther = 2;

/// Value of kParentLevels and kCalleeRanks that is no level or rank.
inline constexpr uint8_t kFar = 255;
/// Values of kStackRanks that are no ranks.
inline constexpr uint8_t kChainEnd = 253;
inline constexpr uint8_t kAboveHighest = 254;
inline constexpr uint8_t kBelowHighest = 255;
/// Capacity of the recency lists: of callees of one frame, and of stacks.
inline constexpr size_t kCalleeListSize = 64;
inline constexpr size_t kStackListSize = 253;
inline constexpr uint32_t kMaxChain = 256;

/// Limits that a writer keeps and a reader checks before it allocates.
inline constexpr size_t kMaxPayload = size_t{16} << 20;  ///< of a block, packed or unpacked
inline constexpr size_t kMaxSamplesPerBlock = 1 << 14;
inline constexpr size_t kMaxCallEventsPerBlock = 1 << 17;
inline constexpr size_t kMaxGpuRows =
    1 << 18;  ///< of a record: devices, kernels, sums, idles, waits, uses, gaps, each
inline constexpr size_t kMaxGpuSpans = 1 << 20;
inline constexpr size_t kMaxRanges = 1 << 18;  ///< of a record: ranges, and rows of streams, each
inline constexpr size_t kMaxRangeSpans = 1 << 20;
/// Moments and durations of spans, of both kinds, are below it, in ns, so that what is reckoned
/// with them is defined.
inline constexpr int64_t kMaxGpuTime = int64_t{1} << 61;
/// What a reader takes of a file of so many bytes. Stacks are what can be packed densest: those of
/// a recursion 1000 deep, entered from ever new places, come to 100 in a byte. There are only so
/// many such places in a program, hence what any file may bring. A stack takes a reader up to 100
/// bytes.
struct DefinitionLimits {
  uint64_t definitions = 0;  ///< of each kind
  uint64_t string_bytes = 0;
};
inline constexpr uint64_t kDefinitionsPerByte = 128;
inline constexpr DefinitionLimits kLimitsOfAny{.definitions = uint64_t{1} << 22,
                                               .string_bytes = uint64_t{1} << 24};
inline constexpr DefinitionLimits kMostLimits{.definitions = uint64_t{1} << 25,
                                              .string_bytes = uint64_t{1} << 30};
constexpr DefinitionLimits LimitsFor(uint64_t file_size) {
  const uint64_t earned = std::min(file_size, kMostLimits.string_bytes) * kDefinitionsPerByte;
  return {.definitions = std::min(kMostLimits.definitions, kLimitsOfAny.definitions + earned),
          .string_bytes = std::min(kMostLimits.string_bytes, kLimitsOfAny.string_bytes + earned)};
}
/// How many bytes the payloads of its blocks may come to, unpacked. Samples that are all alike are
/// packed 700 to 1; real ones 5 to 1.
inline constexpr uint64_t kUnpackedOfAny = uint64_t{1} << 30;
inline constexpr uint64_t kUnpackedPerByte = 1024;
constexpr uint64_t MostUnpackedFor(uint64_t file_size) {
  return kUnpackedOfAny + std::min(file_size, uint64_t{1} << 50) * kUnpackedPerByte;
}
/// How large a file must be for a reader to take so much of it: `taken` is no more than
/// kMostLimits.
constexpr uint64_t SizeFor(DefinitionLimits taken, uint64_t unpacked) {
  const auto size = [](uint64_t wanted, uint64_t free, uint64_t per_byte) {
    return (wanted - std::min(wanted, free) + per_byte - 1) / per_byte;
  };
  return std::max({size(taken.definitions, kLimitsOfAny.definitions, kDefinitionsPerByte),
                   size(taken.string_bytes, kLimitsOfAny.string_bytes, kDefinitionsPerByte),
                   size(unpacked, kUnpackedOfAny, kUnpackedPerByte)});
}

}  // namespace pystrobe::store
