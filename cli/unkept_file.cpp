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
std::array<std::atomic<const char*>, kSlots> unkept;

/// A path stays allocated: a handler may be about to read it.
const std::string* Remember(std::string path) {
  static std::deque<std::string> paths;
  return &paths.emplace_back(std::move(path));
}

void Replace(const char* from, const char* to) {
  for (std::atomic<const char*>& slot : unkept) {
    const char* expected = from;
    if (slot.compare_exchange_strong(expected, to)) return;
  }
}

}  // namespace

UnkeptFile::UnkeptFile(std::string path) : path_(Remember(std::move(path))) {
  Replace(nullptr, path_->c_str());
}

UnkeptFile::UnkeptFile(UnkeptFile&& other) noexcept : path_(std::exchange(other.path_, nullptr)) {}

UnkeptFile& UnkeptFile::operator=(UnkeptFile&& other) noexcept {
  // The other one's destructor settles what becomes of ours.
  std::swap(path_, other.path_);
  return *this;
}

UnkeptFile::~UnkeptFile() {
  if (path_ != nullptr) ::unlink(path_->c_str());
  Keep();
}

void UnkeptFile::Keep() {
  if (path_ != nullptr) Replace(path_->c_str(), nullptr);
  path_ = nullptr;
}

void UnkeptFile::RemoveAll() {
  for (const std::atomic<const char*>& slot : unkept) {
    if (const char* path = slot.load()) ::unlink(path);
  }
}

}  // namespace pystrobe::cli
