// SPDX-License-Identifier: Apache-2.0
//
// Records from a signal handler to the thread that reads them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"

namespace pystrobe::signals {

/// A ring of records of any size, each in one piece and aligned to 8 bytes. Where there is no room
/// the writer is told so and goes on without. [one writer, one reader, at once; the writer's side
/// is async-signal-safe]
class RecordRing {
 public:
  /// `bytes`: a power of two.
  static Result<RecordRing> Make(size_t bytes);
  RecordRing(RecordRing&& other) noexcept;

  /// The longest record that it can hold, however full it is.
  size_t longest() const { return bytes_.capacity() / 2 - kHead; }

  /// Room for a record of `size` bytes; null where there is none, or less than `leave` bytes would
  /// be left. [the writer]
  std::byte* Reserve(size_t size, size_t leave = 0);
  /// Gives what was written into the room reserved last to the reader. [the writer]
  void Commit();

  /// The oldest record, good until Pop; empty where there is none. [the reader]
  std::span<const std::byte> Front();
  /// Frees it. After a Front that was not empty. [the reader]
  void Pop();

 private:
  /// Before each record: its length, or kSkip, to the ring's end there is none.
  using Head = uint64_t;
  static constexpr size_t kHead = sizeof(Head);
  static constexpr Head kSkip = ~Head{0};

  explicit RecordRing(LazyArray<std::byte> bytes) : bytes_(std::move(bytes)) {}

  /// Where all was read, and so much was written since the ring's start, the writer begins there
  /// again: memory further on is used only by records that had to wait.
  static constexpr size_t kFewBytes = size_t{64} << 10;

  size_t OffsetOf(uint64_t position) const { return position & (bytes_.capacity() - 1); }
  /// The ring's start, as the first position behind this one.
  uint64_t NextTurn(uint64_t position) const {
    return position + (bytes_.capacity() - OffsetOf(position));
  }
  void WriteHead(uint64_t position, Head head);
  Head ReadHead(uint64_t position) const;

  LazyArray<std::byte> bytes_;
  std::atomic<uint64_t> written_{0};  // positions count up for ever
  std::atomic<uint64_t> read_{0};
  /// From here, where it had read everything, the reader goes on at the ring's start. Not told by a
  /// head there, as records from the start on may need that place.
  std::atomic<uint64_t> restart_{~uint64_t{0}};
  uint64_t reserved_end_ = 0;  // the writer's
  uint64_t front_end_ = 0;     // the reader's
};

}  // namespace pystrobe::signals
