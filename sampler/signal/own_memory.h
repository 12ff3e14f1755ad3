// SPDX-License-Identifier: Apache-2.0
//
// This process' memory, for a signal handler that may not trust an address.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::signals {

using pyabi::Address;

/// Copies memory when it is first asked for, by system calls that say where there is none instead
/// of faulting. What was asked for in the look before is copied in one call at the start of the
/// next: a thread is mostly where it was a moment ago. A Copy as sampler/pyabi/walk_over.h wants
/// it. [one thread: its handler] [async-signal-safe but for Make]
class OwnMemory {
 public:
  /// What is mapped or not as a whole, and copied when it is first asked for.
  static constexpr size_t kPage = 4096;
  /// What is copied again: several small ones cost less than a page does.
  static constexpr size_t kPiece = 512;
  /// What Find gives at most at once.
  static constexpr size_t kLongest = 1024;
  /// Of one look: 4 MiB of frames. One that is there in pieces when another of its pieces is asked
  /// for takes its room once more. Memory that was never needed is never touched.
  static constexpr size_t kMostPages = 1024;

  /// Fails with kPermission where the system calls are not permitted, as by a seccomp filter.
  static Result<OwnMemory> Make(pid_t pid);

  /// Forgets the bytes, and copies those pieces again that were asked for since the last Renew.
  void Renew();

  /// The bytes [address, address + size), good until the next call; null where they cannot be read,
  /// are too many, or no more pages fit.
  const std::byte* Find(Address address, size_t size);

  /// A value; 0 where Find has none.
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  T ValueOr0(Address address) {
    T value{};
    if (const std::byte* bytes = Find(address, sizeof(T))) std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

  /// That a look can hold.
  static size_t byte_count() { return kMostPages * kPage; }

 private:
  struct Piece {
    Address address;
    bool asked;  ///< since Renew
  };
  /// Where a piece lies in pieces_, as a table by address. An entry of another epoch is free.
  struct Entry {
    Address piece;
    uint32_t index;
    uint32_t epoch;
  };
  static constexpr size_t kPieces = kPage / kPiece;
  static constexpr size_t kMostPieces = kMostPages * kPieces;
  static constexpr size_t kEntries = 2 * kMostPieces;
  /// Runs of pieces that are copied ahead; more are copied when they are asked for.
  static constexpr size_t kMostRuns = 256;
  static constexpr size_t kNone = ~size_t{0};

  OwnMemory(pid_t pid, LazyArray<std::byte> bytes, LazyArray<Piece> pieces,
            LazyArray<Entry> entries)
      : pid_(pid),
        bytes_(std::move(bytes)),
        pieces_(std::move(pieces)),
        entries_(std::move(entries)) {}

  const std::byte* Stitch(Address address, size_t size);
  size_t Load(Address piece);
  size_t IndexOf(Address piece);
  bool CopyPage(Address page);
  void Enter(size_t index);
  Entry& EntryOf(Address piece);
  void KeepAskedSorted();
  size_t CopyAhead();

  pid_t pid_;
  LazyArray<std::byte> bytes_;
  LazyArray<Piece> pieces_;
  LazyArray<Entry> entries_;
  uint32_t epoch_ = 1;  ///< 0: entries that were never written
  size_t hint_ = 0;
  std::array<iovec, kMostRuns> runs_{};  // the signal's stack may be small
  std::array<std::byte, kLongest> stitched_{};
};

}  // namespace pystrobe::signals
