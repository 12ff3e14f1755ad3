// SPDX-License-Identifier: Apache-2.0
#include "cli/unkept_file.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <utility>

namespace pystrobe::cli {
namespace {

/// More outputs than anyone names; those beyond are removed by their owners only.
constexpr size_t kSlots = 64;
std::array<std::atomic<const UnkeptFile::Entry*>, kSlots> unkept;

/// An entry stays allocated: a handler may be about to read it.
const UnkeptFile::Entry* Remember(UnkeptFile::Entry entry) {
  static std::deque<UnkeptFile::Entry> entries;
  return &entries.emplace_back(std::move(entry));
}

void Replace(const UnkeptFile::Entry* from, const UnkeptFile::Entry* to) {
  for (auto& slot : unkept) {
    const UnkeptFile::Entry* expected = from;
    if (slot.compare_exchange_strong(expected, to)) return;
  }
}

/// [async-signal-safe]
void Remove(const UnkeptFile::Entry& entry) {
  const char* path = entry.path.c_str();
  if (PlaceOf(path, entry.file) == Place::kOurs) ::unlink(path);
}

}  // namespace

UnkeptFile::UnkeptFile(std::string path, int fd)
    : entry_(Remember({std::move(path), IdentityOf(fd)})) {
  Replace(nullptr, entry_);
}

UnkeptFile::UnkeptFile(UnkeptFile&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

UnkeptFile& UnkeptFile::operator=(UnkeptFile&& other) noexcept {
  // The other one's destructor settles what becomes of ours.
  std::swap(entry_, other.entry_);
  return *this;
}

UnkeptFile::~UnkeptFile() {
  if (entry_ != nullptr) Remove(*entry_);
  Keep();
}

void UnkeptFile::Keep() {
  if (entry_ != nullptr) Replace(entry_, nullptr);
  entry_ = nullptr;
}

void UnkeptFile::RemoveAll() {
  for (const auto& slot : unkept) {
    if (const Entry* entry = slot.load()) Remove(*entry);
  }
}

}  // namespace pystrobe::cli
