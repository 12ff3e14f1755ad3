// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/own_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace pystrobe::signals {
namespace {

constexpr Address RoundDown(Address address, size_t unit) {
  return address & ~static_cast<Address>(unit - 1);
}

// A write to ourselves rather than a read: of the other process' side, which here is the one that
// is written to, each page is pinned, and that takes most of the time, while the caller's side is
// copied like any argument. Returns how many bytes there are before the first that cannot be read.
size_t Copy(pid_t self, std::span<const iovec> from, std::byte* into, size_t size) {
  const iovec all{into, size};
  const ssize_t copied = process_vm_writev(self, from.data(), from.size(), &all, 1, 0);
  return copied > 0 ? static_cast<size_t>(copied) : 0;
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
  const iovec probe{&pid, sizeof pid};
  if (Copy(pid, {&probe, 1}, bytes->data(), sizeof pid) != sizeof pid) {
    return FailErrno(errno, ErrorCode::kPermission, "process_vm_writev cannot be used");
  }
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

// So that neighbours are one run. They are sorted but for those that were new in the last look.
void OwnMemory::KeepAskedSorted() {
  size_t kept = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].asked) continue;
    const Piece piece = pieces_[i];
    size_t at = kept++;
    for (; at > 0 && pieces_[at - 1].address > piece.address; --at) pieces_[at] = pieces_[at - 1];
    pieces_[at] = piece;
  }
  pieces_.resize(kept);
}

// Returns how many pieces it has.
size_t OwnMemory::CopyAhead() {
  std::array<iovec, kMostRuns> runs;
  size_t run_count = 0, piece_count = 0;
  for (; piece_count < pieces_.size(); ++piece_count) {
    const Address piece = pieces_[piece_count].address;
    if (run_count > 0) {
      iovec& last = runs[run_count - 1];
      if (reinterpret_cast<Address>(last.iov_base) + last.iov_len == piece) {
        last.iov_len += kPiece;
        continue;
      }
    }
    if (run_count == kMostRuns) break;
    runs[run_count++] = {reinterpret_cast<void*>(piece), kPiece};
  }
  if (piece_count == 0) return 0;
  return Copy(pid_, {runs.data(), run_count}, bytes_.data(), piece_count * kPiece) / kPiece;
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
  const iovec whole{reinterpret_cast<void*>(page), kPage};
  if (Copy(pid_, {&whole, 1}, bytes_.data() + first * kPiece, kPage) != kPage) return false;
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
