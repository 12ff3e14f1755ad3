// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/file_limit.h"
#include "cli/message.h"
#include "cli/verbs.h"

namespace pystrobe::cli {
namespace {

struct Dispatch {
  int operator()(const PrintAndExit& print) const {
    return PrintToStdout(print.text) ? kExitOk : kExitFailure;
  }
  int operator()(const AttachOptions& options) const { return Attach(options); }
  int operator()(const RunOptions& options) const { return Run(options); }
  int operator()(const DumpVerbOptions& options) const { return Dump(options); }
  int operator()(const ReportOptions& options) const { return Report(options); }
  int operator()(const DoctorOptions& options) const { return Doctor(options); }
};

/// Makes sure that no file of ours becomes a standard stream which the caller had closed: the table
/// would be written into it.
void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) _exit(kExitFailure);
  }
}

int Main(int argc, char** argv) {
  OpenStandardStreams();
  RaiseFileLimit();
  // A reader that goes away (`| head`) is noticed by write().
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  auto command = ParseCommandLine(words);
  if (!command) {
    PrintError(command.error());
    return ExitCodeFor(command.error());
  }
  return std::visit(Dispatch{}, *command);
}

}  // namespace
}  // namespace pystrobe::cli

int main(int argc, char** argv) { return pystrobe::cli::Main(argc, argv); }
