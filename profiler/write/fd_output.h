// SPDX-License-Identifier: Apache-2.0
//
// Bytes into a file. [one thread at a time]
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profiler/base/error.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Writes to a descriptor, not owned, and gathers small writes: the last ones are there after
/// Flush.
class FdOutput final : public Output {
 public:
  explicit FdOutput(int fd);

  Result<void> Write(std::string_view bytes) override;
  Result<void> Flush();

  /// It failed because the reader went away.
  bool closed() const { return closed_; }

 private:
  Result<void> Send(std::string_view bytes);

  int fd_;
  std::string buffer_;
  std::optional<Error> failure_;
  bool closed_ = false;
};

/// Copies everything in `from` (a file or memfd, from its start) to `output`.
Result<void> CopyFile(int from, Output& output);

}  // namespace pystrobe::write
