// SPDX-License-Identifier: Apache-2.0
#include "cli/out_of_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cli/signals.h"
#include "cli/spawn.h"
#include "profiler/base/no_memory.h"

namespace pystrobe::cli {
namespace {

/// As a sampler has it for the time of a copy.
void HoldByPtrace(pid_t child) {
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) _exit(97);
  ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
  siginfo_t news{};
  if (waitid(P_PID, static_cast<id_t>(child), &news, WSTOPPED | WNOWAIT | __WALL) != 0) _exit(96);
}

/// Watches a program that ends with status 7 after a moment, or when it gets SIGTERM with 8, and
/// runs out of memory as `end` has it; the exit status.
template <typename Function>
int StatusWatching(Function end) {
  const pid_t process = fork();
  if (process == 0) {
    StopSignals signals;
    const sigset_t mask{};
    const std::string script = "trap 'exit 8' TERM; sleep 0.5 & wait; exit 7";
    const auto child = Spawn({"sh", "-c", script}, std::nullopt, mask);
    if (!child) _exit(99);
    signals.ForwardTo(*child);
    const auto watcher = ChildWatcher::Start(*child, signals.stop());
    if (!watcher) _exit(98);
    EndWhenOutOfMemory();
    end(*child);
    (*watcher)->Wait();
    _exit(95);
  }
  // No alarm() there: signals are for the program.
  int status = 0;
  for (int naps = 0; waitpid(process, &status, WNOHANG) == 0; ++naps) {
    if (naps == 1000) kill(process, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(OutOfMemory, LetsTheProgramRunToItsEnd) {
  EXPECT_EQ(StatusWatching([](pid_t) { FailToAllocate(); }), 7);
}

TEST(OutOfMemory, LetsGoWhomItHolds) {
  EXPECT_EQ(StatusWatching([](pid_t child) {
              HoldByPtrace(child);
              FailToAllocate();
            }),
            7);
}

TEST(OutOfMemory, LetsGoWhomItHoldsWhenAnotherThreadWasFirst) {
  EXPECT_EQ(StatusWatching([](pid_t child) {
              HoldByPtrace(child);
              std::thread([] { FailToAllocate(); }).detach();
              std::this_thread::sleep_for(std::chrono::milliseconds(100));
              FailToAllocate();
            }),
            7);
}

TEST(OutOfMemory, AnotherThreadsEndsTheProcessAsWell) {
  EXPECT_EQ(StatusWatching([](pid_t) { std::thread([] { FailToAllocate(); }).join(); }), 7);
}

TEST(OutOfMemory, SignalsStillReachTheProgram) {
  EXPECT_EQ(StatusWatching([](pid_t) {
              std::thread([process = getpid()] {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                kill(process, SIGTERM);
              }).detach();
              FailToAllocate();
            }),
            8);
}

}  // namespace
}  // namespace pystrobe::cli
