// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/dispatcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "sampler/signal/cpu_event.h"

namespace pystrobe::signals {
namespace {

int calls = 0;
struct sigaction older{};

void Count(int, siginfo_t*, void*) { ++calls; }

void CountAndPassOn(int signal, siginfo_t* info, void* context) {
  ++calls;
  if ((older.sa_flags & SA_SIGINFO) != 0) older.sa_sigaction(signal, info, context);
}

class DispatcherTest : public ::testing::Test {
 protected:
  DispatcherTest() {
    calls = 0;
    sigaction(kSignal, nullptr, &before_);
  }
  ~DispatcherTest() override { sigaction(kSignal, &before_, nullptr); }

  static void Handle(void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(kSignal, &action, &older);
  }

 private:
  struct sigaction before_{};
};

TEST_F(DispatcherTest, IsOneAndLeavesNothing) {
  struct sigaction before{}, within{}, after{};
  sigaction(kSignal, nullptr, &before);
  {
    const auto dispatcher = Dispatcher::Install();
    ASSERT_TRUE(dispatcher);
    sigaction(kSignal, nullptr, &within);
    EXPECT_NE(within.sa_sigaction, before.sa_sigaction);
    EXPECT_EQ(Dispatcher::Install().error().code, ErrorCode::kExists);
  }
  sigaction(kSignal, nullptr, &after);
  EXPECT_EQ(after.sa_sigaction, before.sa_sigaction);
  EXPECT_TRUE(Dispatcher::Install());
}

TEST_F(DispatcherTest, LeavesAHandlerThatCameLater) {
  {
    const auto dispatcher = Dispatcher::Install();
    ASSERT_TRUE(dispatcher);
    Handle(Count);
  }
  struct sigaction after{};
  sigaction(kSignal, nullptr, &after);
  EXPECT_EQ(after.sa_sigaction, Count);
}

TEST_F(DispatcherTest, PassesOnWhatIsNotOurs) {
  Handle(Count);
  const auto dispatcher = Dispatcher::Install();
  ASSERT_TRUE(dispatcher);
  raise(kSignal);
  kill(getpid(), kSignal);
  EXPECT_EQ(calls, 2);
}

TEST_F(DispatcherTest, AHandlerThatPassesOnToUsIsCalledOnce) {
  ASSERT_TRUE(Dispatcher::Install());  // and gone again
  const auto first = Dispatcher::Install();
  ASSERT_TRUE(first);
  Handle(CountAndPassOn);  // it has ours for the older one
  raise(kSignal);
  EXPECT_EQ(calls, 1);
}

TEST_F(DispatcherTest, TwoHandlersThatPassOnToEachOtherEnd) {
  {
    const auto first = Dispatcher::Install();
    ASSERT_TRUE(first);
    Handle(CountAndPassOn);
  }
  const auto second = Dispatcher::Install();
  ASSERT_TRUE(second);
  for (int i = 1; i <= 200; ++i) {
    raise(kSignal);
    ASSERT_EQ(calls, i);
  }
}

}  // namespace
}  // namespace pystrobe::signals
