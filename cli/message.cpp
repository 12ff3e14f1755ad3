// SPDX-License-Identifier: Apache-2.0
#include "cli/message.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <limits>

#include "cli/terminal.h"
#include "cli/text.h"

namespace pystrobe::cli {

int ExitCodeFor(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

std::string ErrorText(const Error& error, int width) {
  constexpr int kIndent = 2;
  return Wrap("pystrobe: " + Printable(error.message), width, kIndent) +
         WrapLines(error.hint, width, kIndent);
}

void PrintError(const Error& error) {
  // Nowhere is left to report that stderr cannot be written.
  const Terminal terminal = DescribeTerminal(STDERR_FILENO, kProcessEnvironment);
  const int width = terminal.is_terminal ? terminal.width : std::numeric_limits<int>::max();
  (void)WriteAll(STDERR_FILENO, ErrorText(error, width));
}

void PrintNote(std::string_view line) {
  (void)WriteAll(STDERR_FILENO, "pystrobe: " + Printable(line) + "\n");
}

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

bool IsWritable(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool PrintToStdout(std::string_view text) {
  const auto written = WriteAll(STDOUT_FILENO, text);
  if (written || written.error().closed) return true;
  PrintError(Wrap(written.error().error, "standard output").error());
  return false;
}

}  // namespace pystrobe::cli
