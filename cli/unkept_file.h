// SPDX-License-Identifier: Apache-2.0
//
// Files that we made and that nothing has come of yet.
#pragma once

#include <string>

#include "cli/file_place.h"

namespace pystrobe::cli {

/// Removes the file at a path when it goes, unless Keep() came first; also when the process gives
/// up without destructors (give_up.h). A file that others put there stays. Move-only. [main thread]
class UnkeptFile {
 public:
  UnkeptFile() = default;  ///< no file
  /// The one open as `fd`, at `path` (no symbolic link).
  UnkeptFile(std::string path, int fd);
  UnkeptFile(UnkeptFile&& other) noexcept;
  UnkeptFile& operator=(UnkeptFile&& other) noexcept;
  ~UnkeptFile();

  /// From now on the file stays.
  void Keep();

  /// Removes all there are, before the process ends. [async-signal-safe]
  static void RemoveAll();

  struct Entry {
    std::string path;
    FileIdentity file;
  };

 private:
  const Entry* entry_ = nullptr;
};

}  // namespace pystrobe::cli
