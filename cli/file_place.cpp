// SPDX-License-Identifier: Apache-2.0
#include "cli/file_place.h"

#include <sys/stat.h>

#include <cerrno>

namespace pystrobe::cli {

FileIdentity IdentityOf(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

Place PlaceOf(const char* path, const FileIdentity& file) {
  struct stat status{};
  if (lstat(path, &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Place::kNothing : Place::kOurs;
  }
  return FileIdentity{status.st_dev, status.st_ino} == file ? Place::kOurs : Place::kAnother;
}

}  // namespace pystrobe::cli
