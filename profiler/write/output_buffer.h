// SPDX-License-Identifier: Apache-2.0
//
// What the text writers share between them and an Output. [one thread at a time]
#pragma once

#include <string>
#include <string_view>

#include "profiler/base/error.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Gathers small pieces and passes them on in large ones. Remembers the first failure and takes no
/// more bytes after it, so that a writer checks ok() where it loops and Finish() at its end.
class OutputBuffer {
 public:
  explicit OutputBuffer(Output& output) : output_(output) { pending_.reserve(2 * kFlushAt); }

  void Append(std::string_view bytes) {
    pending_ += bytes;
    if (pending_.size() >= kFlushAt) Flush();
  }
  void Append(char c) { Append(std::string_view(&c, 1)); }

  bool ok() const { return result_.has_value(); }
  /// Passes on what is left; the first failure of all, if there was one.
  Result<void> Finish() {
    Flush();
    return result_;
  }

 private:
  static constexpr size_t kFlushAt = size_t{64} << 10;

  void Flush() {
    if (ok() && !pending_.empty()) result_ = output_.Write(pending_);
    pending_.clear();
  }

  Output& output_;
  std::string pending_;
  Result<void> result_;
};

}  // namespace pystrobe::write
