// SPDX-License-Identifier: Apache-2.0
//
// New contents for a file that has some: written beside it and put in its place when they are
// whole, so that the old ones are there until then whatever happens.
#pragma once

#include <optional>
#include <string>

#include "cli/unkept_file.h"
#include "profiler/base/scoped_fd.h"

namespace pystrobe::cli {

/// A new file with the owner and mode of the one it is to replace. Removed when it goes, unless it
/// took the place. Move-only. [main thread]
class Replacement {
 public:
  /// For the file `path` (no symbolic link), open as `old`. Nothing where no new file can be what
  /// the old one is: the directory is not ours to write in, the owner is another, or the file has
  /// more names than one.
  static std::optional<Replacement> Beside(const std::string& path, int old);

  int fd() const { return fd_.get(); }
  /// False where the path cannot be given another file (a mount point): the old one is still there.
  bool TakePlace();

 private:
  Replacement(const std::string& path, std::string name, ScopedFd fd);

  std::string path_, name_;
  ScopedFd fd_;
  UnkeptFile unkept_;
};

}  // namespace pystrobe::cli
