// SPDX-License-Identifier: Apache-2.0
//
// Whether a path still leads to the file that was opened by it: others may remove or replace it
// meanwhile, and theirs is not ours to touch. [any thread, async-signal-safe]
#pragma once

#include <sys/types.h>

namespace pystrobe::cli {

/// Tells whether two are one file by whatever names.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Of an open file. One that no file has where the descriptor is none.
FileIdentity IdentityOf(int fd);

enum class Place {
  kOurs,     ///< the path leads to the file, or nobody may know
  kNothing,  ///< it was removed, or moved away
  kAnother,  ///< another file has the name, or a symbolic link
};

Place PlaceOf(const char* path, const FileIdentity& file);

}  // namespace pystrobe::cli
