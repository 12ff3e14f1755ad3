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

#include "profiler/base/error.h"
#include "profiler/base/lazy_array.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::signals {

using pyabi::Address;

/// Copies pages when they are first asked for, by process_vm_readv, which says where there is no
/// memory instead of faulting. What was asked for in the look before is copied in one system call
/// at the start of the next: a thread is mostly where it was a moment ago. A Copy as
/// sampler/pyabi/walk_over.h wants it. [one thread: its handler] [async-signal-safe but for Make]
class OwnPages {
 public:
  static constexpr size_t kPage = 4096;
  /// What Find gives at most at once.
  static constexpr size_t kLongest = 1024;
  /// Of one look: 4 MiB of frames. Memory that was never needed is never touched.
  static constexpr size_t kMostPages = 1024;

  static Result<OwnPages> Make(pid_t pid);

  /// Forgets the bytes, and copies those pages again that were asked for since the last Renew.
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
  struct Page {
    Address address;
    bool asked;  ///< since Renew
  };
  /// Where a page lies in pages_, as a table by address. An entry of another epoch is free.
  struct Entry {
    Address page;
    uint32_t index;
    uint32_t epoch;
  };
  static constexpr size_t kEntries = 2 * kMostPages;
  /// Runs of pages that are copied ahead; more are copied when they are asked for.
  static constexpr size_t kMostRuns = 64;
  static constexpr size_t kNone = ~size_t{0};

  OwnPages(pid_t pid, LazyArray<std::byte> bytes, LazyArray<Page> pages, LazyArray<Entry> entries)
      : pid_(pid),
        bytes_(std::move(bytes)),
        pages_(std::move(pages)),
        entries_(std::move(entries)) {}

  size_t Load(Address page);
  size_t IndexOf(Address page);
  Entry& EntryOf(Address page);
  void KeepAskedSorted();
  size_t CopyAhead();
  bool Copy(Address page, std::byte* into) const;

  pid_t pid_;
  LazyArray<std::byte> bytes_;
  LazyArray<Page> pages_;
  LazyArray<Entry> entries_;
  uint32_t epoch_ = 1;  ///< 0: entries that were never written
  size_t hint_ = 0;
  std::array<std::byte, kLongest> stitched_{};
};

}  // namespace pystrobe::signals
