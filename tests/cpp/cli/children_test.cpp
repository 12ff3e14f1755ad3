// SPDX-License-Identifier: Apache-2.0
#include "cli/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace pystrobe::cli {
namespace {

using ::testing::IsEmpty;

TEST(ChildTimeNote, TellsHowMuchWasNotSampled) {
  EXPECT_EQ(
      ChildTimeNote({.own_ticks = 50, .child_ticks = 20}, {.own_ticks = 60, .child_ticks = 143}),
      "child processes that have ended used 1.23 s of CPU time and were not sampled; next time "
      "attach to them while they run, or start what they run with pystrobe run");
}

TEST(ChildTimeNote, IsSilentAboutLittle) {
  EXPECT_THAT(ChildTimeNote({}, {}), IsEmpty());
  EXPECT_THAT(ChildTimeNote({}, {.own_ticks = 0, .child_ticks = 9}), IsEmpty());
  EXPECT_THAT(ChildTimeNote({}, {.own_ticks = 1000, .child_ticks = 99}), IsEmpty());
  EXPECT_THAT(ChildTimeNote({.own_ticks = 9, .child_ticks = 300}, {}), IsEmpty()) << "it is gone";
}

TEST(ChildrenNote, OfAProcessWithoutChildrenThereIsNone) {
  EXPECT_THAT(ChildrenNote(getpid(), ReadChildUse(getpid())), IsEmpty());
}

}  // namespace
}  // namespace pystrobe::cli
