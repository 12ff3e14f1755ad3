// SPDX-License-Identifier: Apache-2.0
//
// Owner of one file descriptor. [any thread, one owner]
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace pystrobe {

/// Closes its descriptor when it goes. Move-only; -1 means none. close() is not repeated on EINTR:
/// on Linux the descriptor is gone by then.
///
/// In a program that samples itself somebody else may close it: daemons close all descriptors, and
/// open files of their own, which get the same numbers. Such a one is left alone. What has no inode
/// of its own (an event, a timer, an epoll) cannot be told from others of that kind.
class ScopedFd {
 public:
  ScopedFd() = default;
  explicit ScopedFd(int fd) : fd_(fd), file_(FileOf(fd)) {}
  ScopedFd(ScopedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), file_(other.file_) {}
  ScopedFd& operator=(ScopedFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
      file_ = other.file_;
    }
    return *this;
  }
  ~ScopedFd() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// Gives the descriptor away; the caller closes it.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset() {
    Close();
    fd_ = -1;
  }
  /// It is there, and nobody has closed it and opened another file under its number.
  bool IsIntact() const { return file_.is_open && FileOf(fd_) == file_; }

 private:
  struct File {
    bool is_open = false;
    dev_t device = 0;
    ino_t inode = 0;

    bool operator==(const File&) const = default;
  };
  static File FileOf(int fd) {
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) return {};
    return {true, status.st_dev, status.st_ino};
  }
  void Close() const {
    if (IsIntact()) close(fd_);
  }

  int fd_ = -1;
  File file_;
};

}  // namespace pystrobe
