// SPDX-License-Identifier: Apache-2.0
#include "profiler/base/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace pystrobe {

std::expected<void, WriteFailure> WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Someone who shares the terminal or pipe made it non-blocking.
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      const int error_number = errno;
      return std::unexpected(
          WriteFailure{error_number == EPIPE,
                       FailErrno(error_number, ErrorCode::kIo, "writing failed").error()});
    }
  }
  return {};
}

}  // namespace pystrobe
