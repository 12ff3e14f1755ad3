// SPDX-License-Identifier: Apache-2.0
//
// Owner of one file descriptor. [any thread, one owner]
#pragma once

#include <unistd.h>

#include <utility>

namespace pystrobe {

/// Closes its descriptor when it goes. Move-only; -1 means none. close() is not repeated on EINTR:
/// on Linux the descriptor is gone by then.
class ScopedFd {
 public:
  ScopedFd() = default;
  explicit ScopedFd(int fd) : fd_(fd) {}
  ScopedFd(ScopedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ScopedFd& operator=(ScopedFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~ScopedFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// Gives the descriptor away; the caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace pystrobe
