// SPDX-License-Identifier: Apache-2.0
#include "cli/out_of_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

#include "cli/give_up.h"
#include "cli/message.h"
#include "cli/signals.h"
#include "cli/spawn.h"

namespace pystrobe::cli {
namespace {

/// Says it without allocating.
void SayWhy() {
  rlimit limit{};
  std::array<char, 256> text;
  auto end = text.begin();
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    end = fmt::format_to_n(text.begin(), text.size(),
                           "pystrobe: out of memory: its limit is {} kB (ulimit -v)\n"
                           "  Raise that limit: ulimit -v unlimited\n",
                           limit.rlim_cur / 1024)
              .out;
  } else {
    end = fmt::format_to_n(text.begin(), text.size(),
                           "pystrobe: out of memory\n"
                           "  End other programs, or give the machine or container more.\n")
              .out;
  }
  // Nowhere is left to report that stderr cannot be written.
  (void)!::write(STDERR_FILENO, text.data(), static_cast<size_t>(end - text.begin()));
}

/// The kernel lets go on whatever this thread holds: the tracer is a thread (ptrace(2)).
[[noreturn]] void EndThread() {
  for (;;) syscall(SYS_exit, 0);
}

/// Its own status is what the user wants to see of the program that was started, so that it is
/// waited for.
[[noreturn]] void EndWith(pid_t child) {
  if (ChildWatcher::EndProcessWithChild()) EndThread();
  // Nobody is held: it is not sampled, or over.
  WaitForEnd(child);
  _exit(Reap(child).value_or(kEndUnknown).status);
}

void End() {
  // Threads may come here together; one of them is enough.
  static std::atomic_flag ending;
  if (ending.test_and_set()) EndThread();
  SayWhy();
  GiveUp();
  if (const pid_t child = StopSignals::forwarded_to(); child > 0) EndWith(child);
  _exit(kExitFailure);
}

}  // namespace

void EndWhenOutOfMemory() { std::set_new_handler(End); }

}  // namespace pystrobe::cli
