// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/own_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace pystrobe::signals {
namespace {

constexpr Address RoundDown(Address address, size_t unit) {
  return address & ~static_cast<Address>(unit - 1);
}

// Of each of these system calls the side of the other process, which here is us too, is pinned page
// by page, and the caller's is copied like any argument. They return how many bytes there are
// before the first that cannot be read.

// Pages of a device, whose registers may not be read for nothing, cannot be pinned: this is for
// addresses of which nothing is known.
size_t CopyPinned(pid_t self, const void* from, std::byte* into, size_t size) {
  const iovec whole{const_cast<void*>(from), size}, local{into, size};
  const ssize_t copied = process_vm_readv(self, &local, 1, &whole, 1, 0);
  return copied > 0 ? static_cast<size_t>(copied) : 0;
}

// To pin takes most of the time, and here that is the side that is written to. By its number, for
// AddressSanitizer asks of the function's argument that all of it be the program's own.
size_t CopyPieces(pid_t self, std::span<const iovec> from, std::byte* into, size_t size) {
  const iovec all{into, size};
  const long copied =
      syscall(SYS_process_vm_writev, self, from.data(), from.size(), &all, 1UL, 0UL);
  return copied > 0 ? static_cast<size_t>(copied) : 0;
}

Result<void> TryBoth(pid_t self, std::byte* into) {
  const iovec probe{&self, sizeof self};
  if (CopyPinned(self, &self, into, sizeof self) == sizeof self &&
      CopyPieces(self, {&probe, 1}, into, sizeof self) == sizeof self) {
    return {};
  }
  auto failed = FailErrno(errno, ErrorCode::kPermission, "reading this process' own memory");
  failed.error().hint =
      "If a filter of system calls is in force (seccomp), allow process_vm_readv and "
      "process_vm_writev in it.";
  return failed;
}

}  // namespace

Result<OwnMemory> OwnMemory::Make(pid_t pid) {
  auto bytes = LazyArray<std::byte>::Make(kMostPages * kPage);
  if (!bytes) return std::unexpected(bytes.error());
  auto pieces = LazyArray<Piece>::Make(kMostPieces);
  if (!pieces) return std::unexpected(pieces.error());
  auto entries = LazyArray<Entry>::Make(kEntries);
  if (!entries) return std::unexpected(entries.error());
  entries->resize(kEntries);
  if (auto tried = TryBoth(pid, bytes->data()); !tried) return std::unexpected(tried.error());
  return OwnMemory(pid, *std::move(bytes), *std::move(pieces), *std::move(entries));
}

void OwnMemory::Renew() {
  if (++epoch_ == 0) {  // all numbers were used: none may be found again
    std::memset(entries_.data(), 0, kEntries * sizeof(Entry));
    epoch_ = 1;
  }
  hint_ = 0;
  KeepAskedSorted();
  pieces_.resize(CopyAhead());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    pieces_[i].asked = false;
    Enter(i);
  }
}

// So that neighbours are one run. They are sorted but for those that were new in the last look,
// which may be all.
void OwnMemory::KeepAskedSorted() {
  const auto end = std::remove_if(pieces_.begin(), pieces_.end(),
                                  [](const Piece& piece) { return !piece.asked; });
  pieces_.resize(static_cast<size_t>(end - pieces_.begin()));
  const auto by_address = [](const Piece& a, const Piece& b) { return a.address < b.address; };
  if (std::is_sorted(pieces_.begin(), pieces_.end(), by_address)) return;
  std::sort(pieces_.begin(), pieces_.end(), by_address);
}

// Returns how many pieces it has.
size_t OwnMemory::CopyAhead() {
  size_t run_count = 0, piece_count = 0;
  for (; piece_count < pieces_.size(); ++piece_count) {
    const Address piece = pieces_[piece_count].address;
    if (run_count > 0) {
      iovec& last = runs_[run_count - 1];
      if (reinterpret_cast<Address>(last.iov_base) + last.iov_len == piece) {
        last.iov_len += kPiece;
        continue;
      }
    }
    if (run_count == kMostRuns) break;
    runs_[run_count++] = {reinterpret_cast<void*>(piece), kPiece};
  }
  if (piece_count == 0) return 0;
  return CopyPieces(pid_, {runs_.data(), run_count}, bytes_.data(), piece_count * kPiece) / kPiece;
}

const std::byte* OwnMemory::Find(Address address, size_t size) {
  if (size == 0 || size > kLongest || address + size < address) return nullptr;
  const Address piece = RoundDown(address, kPiece);
  const size_t first = Load(piece);
  if (first == kNone) return nullptr;
  size_t index = first;
  for (Address next = piece + kPiece; next < address + size; next += kPiece) {
    const size_t found = Load(next);
    if (found == kNone) return nullptr;
    if (found != ++index) return Stitch(address, size);
  }
  return bytes_.data() + first * kPiece + (address - piece);
}

// Of pieces that do not lie one behind the other.
const std::byte* OwnMemory::Stitch(Address address, size_t size) {
  for (size_t done = 0; done < size;) {
    const Address at = address + done, piece = RoundDown(at, kPiece);
    const size_t index = Load(piece);
    if (index == kNone) return nullptr;
    const size_t part = std::min<size_t>(size - done, piece + kPiece - at);
    std::memcpy(stitched_.data() + done, bytes_.data() + index * kPiece + (at - piece), part);
    done += part;
  }
  return stitched_.data();
}

size_t OwnMemory::Load(Address piece) {
  const size_t index = IndexOf(piece);
  if (index != kNone) pieces_[index].asked = true;
  return index;
}

size_t OwnMemory::IndexOf(Address piece) {
  if (hint_ < pieces_.size() && pieces_[hint_].address == piece) return hint_;
  const Entry* entry = &EntryOf(piece);
  if (entry->epoch != epoch_) {
    if (!CopyPage(RoundDown(piece, kPage))) return kNone;
    entry = &EntryOf(piece);
  }
  return hint_ = entry->index;
}

// All of its pieces: who asks for one is about to ask for others.
bool OwnMemory::CopyPage(Address page) {
  const size_t first = pieces_.size();
  if (first + kPieces > kMostPieces) return false;
  const auto* from = reinterpret_cast<const void*>(page);
  if (CopyPinned(pid_, from, bytes_.data() + first * kPiece, kPage) != kPage) return false;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces_.Append({page + i * kPiece, false});
    Enter(first + i);
  }
  return true;
}

// One that is there already is as good, and was asked for perhaps.
void OwnMemory::Enter(size_t index) {
  Entry& entry = EntryOf(pieces_[index].address);
  if (entry.epoch != epoch_) {
    entry = {pieces_[index].address, static_cast<uint32_t>(index), epoch_};
  }
}

// That of `piece`, or a free one. There always is one: there are more entries than pieces. Those of
// neighbours lie side by side, in what memory the table then takes.
OwnMemory::Entry& OwnMemory::EntryOf(Address piece) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  constexpr uint64_t kNeighbours = uint64_t{64} << 10;
  size_t at = ((piece / kNeighbours * kGolden) >> 32) + piece / kPiece;
  for (;; ++at) {
    Entry& entry = entries_[at % kEntries];
    if (entry.epoch != epoch_ || entry.piece == piece) return entry;
  }
}

}  // namespace pystrobe::signals
