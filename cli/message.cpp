// SPDX-License-Identifier: Apache-2.0
#include "cli/message.h"

#include <poll.h>
#include <unistd.h>

#include "cli/text.h"

namespace pystrobe::cli {

int ExitCodeFor(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

std::string ErrorText(const Error& error) {
  std::string text = "pystrobe: " + Printable(error.message) + "\n";
  std::string_view hint = error.hint;
  while (!hint.empty()) {
    const size_t end = hint.find('\n');
    text += "  " + Printable(hint.substr(0, end)) + "\n";
    hint.remove_prefix(end == std::string_view::npos ? hint.size() : end + 1);
  }
  return text;
}

void PrintError(const Error& error) {
  // Nowhere is left to report that stderr cannot be written.
  (void)WriteAll(STDERR_FILENO, ErrorText(error));
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

bool PrintToStdout(std::string_view text) {
  const auto written = WriteAll(STDOUT_FILENO, text);
  if (written || written.error().closed) return true;
  PrintError(Wrap(written.error().error, "standard output").error());
  return false;
}

}  // namespace pystrobe::cli
