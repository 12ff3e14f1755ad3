// SPDX-License-Identifier: Apache-2.0
//
// A real interpreter to look at: the `python3` of the PATH.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tests/cpp/support/child.h"

namespace pystrobe::testing {

/// A child that runs a program given as text until it ends by itself, or with this object.
class PythonProgram {
 public:
  explicit PythonProgram(const char* text) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    child_.emplace([this, text] {
      dup2(ends_[1], STDOUT_FILENO);
      close(ends_[0]);
      execlp("python3", "python3", "-c", text, nullptr);
    });
    close(ends_[1]);
    output_.reset(fdopen(ends_[0], "r"));
  }

  pid_t pid() const { return child_->pid(); }
  /// The first characters that it prints; fewer where it ends before.
  std::string Read(size_t size) const {
    std::string text(size, '\0');
    text.resize(output_ ? fread(text.data(), 1, size, output_.get()) : 0);
    return text;
  }
  /// The next number that it prints.
  std::optional<uint64_t> ReadNumber() const {
    uint64_t number = 0;
    if (!output_ || fscanf(output_.get(), "%lu", &number) != 1) return std::nullopt;
    return number;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::optional<Child> child_;
  std::unique_ptr<FILE, int (*)(FILE*)> output_{nullptr, fclose};
};

}  // namespace pystrobe::testing
