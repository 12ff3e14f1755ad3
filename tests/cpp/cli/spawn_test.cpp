// SPDX-License-Identifier: Apache-2.0
#include "cli/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pystrobe::cli {
namespace {

using ::testing::HasSubstr;

pid_t SpawnShell(const std::string& script) {
  const sigset_t mask{};
  const auto child = Spawn({"sh", "-c", script}, std::nullopt, mask);
  EXPECT_TRUE(child) << child.error().message;
  return child.value_or(-1);
}

TEST(Reap, TellsTheExitStatus) {
  EXPECT_EQ(Reap(SpawnShell("exit 3")).value_or(-1), 3);
  EXPECT_EQ(Reap(SpawnShell("kill -KILL $$")).value_or(-1), 128 + SIGKILL);
}

TEST(Reap, AStatusThatCannotBeLearnedIsNoSuccess) {
  const pid_t child = SpawnShell("exit 3");
  ASSERT_TRUE(Reap(child));
  const auto again = Reap(child);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("cannot learn how process"));
}

TEST(ChildWatcher, SeesTheEndAndLeavesTheReaping) {
  std::atomic<bool> ended = false;
  const pid_t child = SpawnShell("exit 5");
  const auto watcher = ChildWatcher::Start(child, ended);
  ASSERT_TRUE(watcher);
  EXPECT_TRUE((*watcher)->WaitFor(std::chrono::seconds(20)));
  EXPECT_TRUE(ended);
  EXPECT_EQ(Reap(child).value_or(-1), 5);
}

}  // namespace
}  // namespace pystrobe::cli
