// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/fd_output.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "profiler/base/write_all.h"

namespace pystrobe::write {
namespace {

constexpr size_t kBufferSize = size_t{64} << 10;

}  // namespace

FdOutput::FdOutput(int fd) : fd_(fd) { buffer_.reserve(kBufferSize); }

Result<void> FdOutput::Write(std::string_view bytes) {
  if (failure_) return std::unexpected(*failure_);
  if (buffer_.size() + bytes.size() <= kBufferSize) {
    buffer_ += bytes;
    return {};
  }
  if (auto flushed = Flush(); !flushed) return flushed;
  if (bytes.size() < kBufferSize) {
    buffer_ += bytes;
    return {};
  }
  return Send(bytes);
}

Result<void> FdOutput::Flush() {
  if (failure_) return std::unexpected(*failure_);
  auto sent = Send(buffer_);
  buffer_.clear();
  return sent;
}

Result<void> FdOutput::Send(std::string_view bytes) {
  auto written = WriteAll(fd_, bytes);
  if (written) return {};
  failure_ = written.error().error;
  closed_ = written.error().closed;
  return std::unexpected(*failure_);
}

Result<void> CopyFile(int from, Output& output) {
  std::array<char, kBufferSize> buffer;
  off_t offset = 0;
  for (;;) {
    const ssize_t got = pread(from, buffer.data(), buffer.size(), offset);
    if (got == 0) return {};
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno(errno, ErrorCode::kUnreadable, "reading the recording back failed");
    }
    if (auto sent = output.Write({buffer.data(), static_cast<size_t>(got)}); !sent) return sent;
    offset += got;
  }
}

}  // namespace pystrobe::write
