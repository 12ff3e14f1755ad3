// SPDX-License-Identifier: Apache-2.0
//
// Files that we made and that nothing has come of yet.
#pragma once

#include <string>

namespace pystrobe::cli {

/// Removes the file at a path when it goes, unless Keep() came first; also when the process gives
/// up without destructors (signals.h). Move-only. [main thread]
class UnkeptFile {
 public:
  UnkeptFile() = default;  ///< no file
  explicit UnkeptFile(std::string path);
  UnkeptFile(UnkeptFile&& other) noexcept;
  UnkeptFile& operator=(UnkeptFile&& other) noexcept;
  ~UnkeptFile();

  /// From now on the file stays.
  void Keep();

  /// Removes all there are, before the process ends. [async-signal-safe]
  static void RemoveAll();

 private:
  const std::string* path_ = nullptr;
};

}  // namespace pystrobe::cli
