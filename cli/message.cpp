// SPDX-License-Identifier: Apache-2.0
#include "cli/message.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>

#include "profiler/base/write_all.h"
#include "profiler/print/terminal.h"
#include "profiler/print/text.h"

namespace pystrobe::cli {

int ExitCodeFor(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

std::string ErrorText(const Error& error, int width) {
  constexpr int kIndent = 2;
  return print::Wrap("pystrobe: " + print::Printable(error.message), width, kIndent) +
         print::WrapLines(error.hint, width, kIndent);
}

void PrintError(const Error& error) {
  // Nowhere is left to report that stderr cannot be written.
  const print::Terminal terminal = print::DescribeTerminal(STDERR_FILENO, kProcessEnvironment);
  const int width = terminal.is_terminal ? terminal.width : std::numeric_limits<int>::max();
  (void)WriteAll(STDERR_FILENO, ErrorText(error, width));
}

void PrintNote(std::string_view line) {
  (void)WriteAll(STDERR_FILENO, "pystrobe: " + print::Printable(line) + "\n");
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
