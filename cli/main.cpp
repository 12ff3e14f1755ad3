// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/file_limit.h"
#include "cli/lost_pages.h"
#include "cli/message.h"
#include "cli/out_of_memory.h"
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
  int operator()(const BenchOptions& options) const { return Bench(options); }
};

/// Makes sure that no file of ours becomes a standard stream which the caller had closed: the table
/// would be written into it. Writing to such a standard output fails, as to a closed one; nobody
/// can be told that of standard error. A program that we start finds closed what was.
void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const int how = fd == STDERR_FILENO ? O_RDWR : O_RDONLY;
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how | O_CLOEXEC) < 0) _exit(kExitFailure);
  }
}

/// Before the globals of libraries are made: they allocate.
[[gnu::constructor(101)]] void BeforeGlobals() { EndWhenOutOfMemory(); }

int Main(int argc, char** argv) {
  OpenStandardStreams();
  RaiseFileLimit();
  ReadLostPagesAsZeros();
  // A reader that goes away (`| head`) is noticed by write(), and so is a file as big as files may
  // be (`ulimit -f`).
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
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
