// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace pystrobe::cli {
namespace {

constexpr auto kAnotherStop = std::chrono::milliseconds(300);

/// The wait status of a process that does `what`.
template <typename What>
int StatusUnderSignals(What what) {
  const pid_t child = fork();
  if (child == 0) {
    StopSignals signals;
    what(signals);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StopSignalsTest, TheSecondGivesUp) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              raise(SIGINT);
              if (!signals.stop()) _exit(1);
              std::this_thread::sleep_for(kAnotherStop);
              raise(SIGINT);
            }),
            128 + SIGINT);
}

TEST(StopSignalsTest, TheSecondTakesTheShortcutAndTheThirdGivesUp) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              raise(SIGINT);
              signals.OfferShortcut();
              raise(SIGINT);
              if (signals.shortcut_taken()) _exit(1);  // one stop with the first
              std::this_thread::sleep_for(kAnotherStop);
              raise(SIGINT);
              if (!signals.shortcut_taken()) _exit(2);
              raise(SIGINT);  // one with the second
              std::this_thread::sleep_for(kAnotherStop);
              signals.OfferShortcut();
              raise(SIGTERM);
            }),
            128 + SIGTERM);
}

TEST(StopSignalsTest, ThoseForAChildDoNotStopUs) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              const pid_t child = fork();
              if (child == 0) {
                signal(SIGINT, SIG_DFL);
                for (;;) pause();
              }
              signals.ForwardTo(child);
              int status = 0;
              for (int i = 0; i < 2; ++i) {
                raise(SIGINT);
                std::this_thread::sleep_for(kAnotherStop);
              }
              if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) _exit(1);
              if (signals.stop()) _exit(2);
            }),
            0);
}

TEST(StopSignalsTest, TheOneAfterThatIsTheSecond) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              const pid_t child = fork();
              if (child == 0) _exit(0);
              signals.ForwardTo(child);
              raise(SIGINT);
              waitpid(child, nullptr, 0);
              signals.StopForwarding();
              raise(SIGINT);  // one with the first
              std::this_thread::sleep_for(kAnotherStop);
              raise(SIGINT);
            }),
            128 + SIGINT);
}

TEST(StopSignalsTest, WhereNoneWasForAChildTheFirstAfterItStopsOnly) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              signals.ForwardTo(getpid());
              signals.StopForwarding();
              raise(SIGINT);
              if (!signals.stop()) _exit(1);
            }),
            0);
}

TEST(StopSignalsTest, WhereSamplingEndedByItselfTheFirstTakesIt) {
  EXPECT_EQ(StatusUnderSignals([](StopSignals& signals) {
              signals.OfferShortcut();
              raise(SIGINT);
              if (!signals.shortcut_taken()) _exit(1);
            }),
            0);
}

}  // namespace
}  // namespace pystrobe::cli
