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
  EXPECT_EQ(Reap(SpawnShell("exit 3")).value().status, 3);
  EXPECT_EQ(Reap(SpawnShell("kill -KILL $$")).value().status, 128 + SIGKILL);
}

TEST(EndNote, TellsWhatWasNoSuccess) {
  const auto note = [](const std::string& script) {
    return EndNote(Reap(SpawnShell(script)).value());
  };
  EXPECT_EQ(note("exit 0"), "");
  EXPECT_EQ(note("exit 139"), "the program exited with status 139");
  EXPECT_EQ(note("ulimit -c 0; kill -SEGV $$"),
            "the program was ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(note("kill -34 $$"), "the program was ended by signal 34 (real-time)");
  EXPECT_EQ(note("kill -INT $$"), "") << "Ctrl-C is the user's own";
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
  EXPECT_EQ(Reap(child).value().status, 5);
}

}  // namespace
}  // namespace pystrobe::cli
