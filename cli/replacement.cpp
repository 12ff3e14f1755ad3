// SPDX-License-Identifier: Apache-2.0
#include "cli/replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace pystrobe::cli {
namespace {

/// Gives the file `fd` the owner and mode of another.
bool Resemble(int fd, const struct stat& other) {
  struct stat own{};
  if (fstat(fd, &own) != 0) return false;
  const bool same_owner = own.st_uid == other.st_uid && own.st_gid == other.st_gid;
  if (!same_owner && fchown(fd, other.st_uid, other.st_gid) != 0) return false;
  return fchmod(fd, other.st_mode & 07777) == 0;
}

}  // namespace

Replacement::Replacement(const std::string& path, std::string name, ScopedFd fd)
    : path_(path), name_(std::move(name)), fd_(std::move(fd)), unkept_(name_, fd_.get()) {}

std::optional<Replacement> Replacement::Beside(const std::string& path, int old) {
  struct stat status{};
  if (fstat(old, &status) != 0 || status.st_nlink > 1) return std::nullopt;
  std::string name = path + ".XXXXXX";
  ScopedFd fd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  Replacement replacement(path, std::move(name), std::move(fd));
  if (!Resemble(replacement.fd(), status)) return std::nullopt;
  return replacement;
}

bool Replacement::TakePlace() {
  if (std::rename(name_.c_str(), path_.c_str()) != 0) return false;
  unkept_.Keep();
  return true;
}

}  // namespace pystrobe::cli
