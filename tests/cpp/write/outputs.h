// SPDX-License-Identifier: Apache-2.0
//
// Outputs for tests of the writers. [one thread at a time]
#pragma once

#include <string>
#include <string_view>

#include "profiler/write/writer.h"

namespace pystrobe::testing {

class StringOutput final : public write::Output {
 public:
  Result<void> Write(std::string_view bytes) override {
    text += bytes;
    return {};
  }

  std::string text;
};

/// A disk that is full after `room` bytes. Counts what is still tried after the first failure.
class FullOutput final : public write::Output {
 public:
  explicit FullOutput(size_t room) : room_(room) {}

  Result<void> Write(std::string_view bytes) override {
    if (failed_) ++writes_after_failure;
    if (failed_ || bytes.size() > room_) {
      failed_ = true;
      return Fail(ErrorCode::kIo, "no space left");
    }
    room_ -= bytes.size();
    return {};
  }

  int writes_after_failure = 0;

 private:
  size_t room_;
  bool failed_ = false;
};

}  // namespace pystrobe::testing
