// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace pystrobe {
namespace {

WriteFailure FailureOf(int error_number) {
  Error error = FailErrno(error_number, ErrorCode::kIo, "writing failed").error();
  if (error_number == EFBIG) error.hint = "Raise the limit of file sizes: ulimit -f unlimited";
  return {error_number == EPIPE, std::move(error)};
}

}  // namespace

std::expected<void, WriteFailure> WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      // Someone who shares the terminal or pipe made it non-blocking.
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return std::unexpected(FailureOf(written == 0 ? ENOSPC : errno));
    }
  }
  return {};
}

}  // namespace pystrobe
