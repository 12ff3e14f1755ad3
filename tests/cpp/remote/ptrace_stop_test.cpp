// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/ptrace_stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cpp/support/spinning_child.h"

namespace pystrobe::remote {
namespace {

using Child = testing::SpinningChild;

TEST(PtraceStop, HoldsAndLetsGo) {
  Child child;
  PtraceStop stop;
  ASSERT_TRUE(stop.Stop(child.pid()));
  EXPECT_EQ(child.state(), 't');
  EXPECT_FALSE(stop.stopped_anyway());
  stop.Resume();
  EXPECT_EQ(child.state(), 'R');
  EXPECT_EQ(child.tracer(), 0);
}

TEST(PtraceStop, AStoppedProcessStaysStopped) {
  Child child;
  kill(child.pid(), SIGSTOP);
  child.WaitForState('T');
  PtraceStop stop;
  ASSERT_TRUE(stop.Stop(child.pid()));
  EXPECT_TRUE(stop.stopped_anyway());
  stop.Resume();
  child.WaitForState('T');
  kill(child.pid(), SIGCONT);
  child.WaitForState('R');
  ASSERT_TRUE(stop.Stop(child.pid()));
  EXPECT_FALSE(stop.stopped_anyway());
}

TEST(PtraceStop, ASignalOnItsWayArrives) {
  Child child;
  for (int i = 0; i < 50; ++i) {
    PtraceStop stop;
    kill(child.pid(), SIGCHLD);
    ASSERT_TRUE(stop.Stop(child.pid())) << i;
  }
  PtraceStop stop;
  kill(child.pid(), SIGTERM);
  stop.Stop(child.pid());
  stop.Resume();
  siginfo_t end{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(end.si_status, SIGTERM);
}

TEST(PtraceStop, WhatAnotherTracesIsNotHeld) {
  Child child;
  ASSERT_EQ(ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0);
  PtraceStop stop;
  EXPECT_FALSE(stop.Stop(child.pid()));
}

TEST(PtraceStop, TheEndOfAChildIsLeftToItsParent) {
  Child child;
  PtraceStop stop;
  ASSERT_TRUE(stop.Stop(child.pid()));
  kill(child.pid(), SIGKILL);
  stop.Resume();
  siginfo_t end{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &end, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(stop.Stop(child.pid()));
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &end, WEXITED | WNOWAIT), 0);
}

}  // namespace
}  // namespace pystrobe::remote
