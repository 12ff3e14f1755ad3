// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/own_pages.h"

#include <utility>

namespace pystrobe::signals {
namespace {

Address PageOf(Address address) { return address & ~Address{OwnPages::kPage - 1}; }

}  // namespace

Result<OwnPages> OwnPages::Make(pid_t pid) {
  auto bytes = LazyArray<std::byte>::Make(kMostPages * kPage);
  if (!bytes) return std::unexpected(bytes.error());
  auto pages = LazyArray<Page>::Make(kMostPages);
  if (!pages) return std::unexpected(pages.error());
  auto entries = LazyArray<Entry>::Make(kEntries);
  if (!entries) return std::unexpected(entries.error());
  entries->resize(kEntries);
  return OwnPages(pid, *std::move(bytes), *std::move(pages), *std::move(entries));
}

void OwnPages::Renew() {
  if (++epoch_ == 0) {  // all numbers were used: none may be found again
    std::memset(entries_.data(), 0, kEntries * sizeof(Entry));
    epoch_ = 1;
  }
  hint_ = 0;
  KeepAskedSorted();
  pages_.resize(CopyAhead());
  for (size_t i = 0; i < pages_.size(); ++i) {
    pages_[i].asked = false;
    EntryOf(pages_[i].address) = {pages_[i].address, static_cast<uint32_t>(i), epoch_};
  }
}

// So that neighbours are one piece of the scattered read. They are sorted but for those that were
// new in the last look.
void OwnPages::KeepAskedSorted() {
  size_t kept = 0;
  for (size_t i = 0; i < pages_.size(); ++i) {
    if (!pages_[i].asked) continue;
    const Page page = pages_[i];
    size_t at = kept++;
    for (; at > 0 && pages_[at - 1].address > page.address; --at) pages_[at] = pages_[at - 1];
    pages_[at] = page;
  }
  pages_.resize(kept);
}

// Returns how many pages it has.
size_t OwnPages::CopyAhead() {
  std::array<iovec, kMostRuns> runs;
  size_t run_count = 0, page_count = 0;
  for (; page_count < pages_.size(); ++page_count) {
    const Address page = pages_[page_count].address;
    if (run_count > 0) {
      iovec& last = runs[run_count - 1];
      if (reinterpret_cast<Address>(last.iov_base) + last.iov_len == page) {
        last.iov_len += kPage;
        continue;
      }
    }
    if (run_count == kMostRuns) break;
    runs[run_count++] = {reinterpret_cast<void*>(page), kPage};
  }
  if (page_count == 0) return 0;
  const iovec into{bytes_.data(), page_count * kPage};
  const ssize_t copied = process_vm_readv(pid_, &into, 1, runs.data(), run_count, 0);
  // Up to the first that is no longer mapped.
  return copied > 0 ? static_cast<size_t>(copied) / kPage : 0;
}

const std::byte* OwnPages::Find(Address address, size_t size) {
  if (size > kLongest || address + size < address) return nullptr;
  const Address page = PageOf(address);
  const size_t first = Load(page);
  if (first == kNone) return nullptr;
  const size_t offset = address - page;
  const std::byte* bytes = bytes_.data() + first * kPage + offset;
  if (offset + size <= kPage) return bytes;
  const size_t second = Load(page + kPage);
  if (second == kNone) return nullptr;
  if (second == first + 1) return bytes;
  const size_t head = kPage - offset;
  std::memcpy(stitched_.data(), bytes, head);
  std::memcpy(stitched_.data() + head, bytes_.data() + second * kPage, size - head);
  return stitched_.data();
}

size_t OwnPages::Load(Address page) {
  const size_t index = IndexOf(page);
  if (index != kNone) pages_[index].asked = true;
  return index;
}

size_t OwnPages::IndexOf(Address page) {
  if (hint_ < pages_.size() && pages_[hint_].address == page) return hint_;
  Entry& entry = EntryOf(page);
  if (entry.epoch == epoch_) return hint_ = entry.index;
  const size_t index = pages_.size();
  if (index == kMostPages || !Copy(page, bytes_.data() + index * kPage)) return kNone;
  pages_.Append({page, false});
  entry = {page, static_cast<uint32_t>(index), epoch_};
  return hint_ = index;
}

// That of `page`, or a free one. There always is one: there are more entries than pages.
OwnPages::Entry& OwnPages::EntryOf(Address page) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  size_t at = ((page / kPage) * kGolden) >> 32;
  for (;; ++at) {
    Entry& entry = entries_[at % kEntries];
    if (entry.epoch != epoch_ || entry.page == page) return entry;
  }
}

bool OwnPages::Copy(Address page, std::byte* into) const {
  const iovec local{into, kPage}, remote{reinterpret_cast<void*>(page), kPage};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(kPage);
}

}  // namespace pystrobe::signals
