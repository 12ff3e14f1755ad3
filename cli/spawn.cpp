// SPDX-License-Identifier: Apache-2.0
#include "cli/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "cli/file_limit.h"
#include "cli/message.h"
#include "profiler/base/scoped_fd.h"
#include "profiler/base/thread.h"

namespace pystrobe::cli {
namespace {

enum class Watching { kNothing, kChild, kLastThing };

// Of the one ChildWatcher; who calls for want of memory knows no object.
std::atomic<Watching> watch;

bool Become(const Invoker& invoker) {
  if (setgroups(invoker.groups.size(), invoker.groups.data()) != 0) return false;
  if (setgid(invoker.gid) != 0 || setuid(invoker.uid) != 0) return false;
  if (!invoker.home.empty()) setenv("HOME", invoker.home.c_str(), 1);
  if (!invoker.name.empty()) {
    setenv("USER", invoker.name.c_str(), 1);
    setenv("LOGNAME", invoker.name.c_str(), 1);
  }
  return true;
}

/// What exec wants. Made before the fork: a child must not run into our end for want of memory.
std::vector<char*> ArgumentsOf(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

/// Handlers go with exec, but a signal may come before, and ours are about our files.
void DropHandlers() {
  for (int signal = 1; signal < _NSIG; ++signal) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    ::signal(signal, SIG_DFL);
  }
}

void Give(const ForChild& given) {
  for (const std::string& variable : given.environment) putenv(const_cast<char*>(variable.c_str()));
  if (given.descriptor >= 0) fcntl(given.descriptor, F_SETFD, 0);
}

/// Returns only when the program cannot be started, with errno.
int Execute(const std::vector<char*>& arguments, const std::optional<Invoker>& invoker) {
  // Ignored signals stay with exec, as the mask does.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  RestoreFileLimit();
  if (!invoker || Become(*invoker)) execvp(arguments[0], arguments.data());
  return errno;
}

/// In the child: never returns. Writes errno to `report` when the program cannot be started.
[[noreturn]] void Start(const std::vector<char*>& arguments, const std::optional<Invoker>& invoker,
                        const sigset_t& mask, const struct sigaction& on_child, int report,
                        const ForChild& given) {
  DropHandlers();
  sigaction(SIGCHLD, &on_child, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  Give(given);
  const int error_number = Execute(arguments, invoker);
  (void)!write(report, &error_number, sizeof error_number);
  _exit(127);
}

std::unexpected<Error> StartError(int error_number, const std::string& program) {
  auto failed = FailErrno(error_number, ErrorCode::kUnreadable, "cannot start {}", program);
  if (error_number == ENOENT && program.find('/') == std::string::npos) {
    return FailWithHint(ErrorCode::kNotFound,
                        "Give its path, or add its directory to PATH; the interpreter for scripts "
                        "is set by --python.",
                        "cannot start {}: there is no such command in PATH", program);
  }
  if (error_number == ENOEXEC) {
    failed.error().hint = "It is no program; a script needs a first line such as #!/bin/sh";
  }
  return failed;
}

}  // namespace

Result<pid_t> Spawn(const std::vector<std::string>& command, const std::optional<Invoker>& invoker,
                    const sigset_t& mask, const ForChild& given) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return FailErrno(errno, ErrorCode::kIo, "cannot make a pipe");
  }
  const ScopedFd reading(ends[0]);
  ScopedFd writing(ends[1]);
  // Who started us may have ignored SIGCHLD, and the kernel would discard the exit status.
  struct sigaction standard{}, on_child{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &on_child);
  const std::vector<char*> arguments = ArgumentsOf(command);
  const pid_t child = fork();
  if (child == 0) Start(arguments, invoker, mask, on_child, writing.get(), given);
  if (child < 0) return FailErrno(errno, ErrorCode::kIo, "cannot start a process");
  writing.reset();
  int error_number = 0;
  ssize_t got = 0;
  do {
    got = read(reading.get(), &error_number, sizeof error_number);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error_number) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return StartError(error_number, command.front());
}

Error BecomeProgram(const std::vector<std::string>& command,
                    const std::optional<Invoker>& invoker) {
  const int error_number = Execute(ArgumentsOf(command), invoker);
  return StartError(error_number, command.front()).error();
}

Result<std::unique_ptr<ChildWatcher>> ChildWatcher::Start(pid_t child, std::atomic<bool>& ended) {
  std::unique_ptr<ChildWatcher> watcher(new ChildWatcher(child));
  watch = Watching::kChild;
  // The kernel gives signals to the main thread while there is one, as they must interrupt its
  // waits, and then to this one, for the child's sake.
  auto thread =
      StartThread("the program's end", [self = watcher.get(), &ended] { self->Watch(ended); });
  if (!thread) {
    watch = Watching::kNothing;
    return std::unexpected(thread.error());
  }
  watcher->thread_ = *std::move(thread);
  return watcher;
}

ChildWatcher::~ChildWatcher() {
  if (thread_.joinable()) thread_.join();
}

void ChildWatcher::Watch(std::atomic<bool>& ended) {
  WaitForEnd(child_);
  if (watch.exchange(Watching::kNothing) == Watching::kLastThing) {
    _exit(Reap(child_).value_or(kEndUnknown).status);
  }
  ended = true;
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

bool ChildWatcher::WaitFor(Nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return over_; });
}

void ChildWatcher::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_; });
}

bool ChildWatcher::EndProcessWithChild() {
  Watching expected = Watching::kChild;
  return watch.compare_exchange_strong(expected, Watching::kLastThing);
}

void WaitForEnd(pid_t child) {
  constexpr Nanoseconds kNap = std::chrono::milliseconds(5);
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (info.si_code != CLD_TRAPPED) return;
    // Told although not asked for: a thread of ours has it stopped for a moment, by ptrace.
    std::this_thread::sleep_for(kNap);
  }
}

Result<ChildEnd> Reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    return FailErrno(errno, ErrorCode::kUnreadable, "cannot learn how process {} ended", child);
  }
  if (WIFSIGNALED(status)) return ChildEnd{128 + WTERMSIG(status), WTERMSIG(status)};
  return ChildEnd{WEXITSTATUS(status)};
}

std::string EndNote(const ChildEnd& end) {
  if (end.signal == SIGINT) return "";
  if (end.signal != 0) {
    const char* description = sigdescr_np(end.signal);
    return fmt::format("the program was ended by signal {} ({})", end.signal,
                       description != nullptr ? description : "real-time");
  }
  return end.status != 0 ? fmt::format("the program exited with status {}", end.status) : "";
}

}  // namespace pystrobe::cli
