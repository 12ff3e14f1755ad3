// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

namespace pystrobe::cli {
namespace {

remote::Progress TwelveSeconds() {
  remote::Progress progress;
  progress.elapsed = std::chrono::milliseconds(12'000);
  progress.quality.taken = 11'998;
  return progress;
}

TEST(ProgressText, IsAsItsContractShows) {
  EXPECT_EQ(ProgressText(TwelveSeconds(), 80),
            "0:12  11,998 samples  1,000 Hz  (Ctrl-C stops and reports)");
}

TEST(ProgressText, AtTheEndItIsWhatIsLeftToDo) {
  remote::Progress progress = TwelveSeconds();
  progress.stacks_left = 1234;
  EXPECT_EQ(ProgressText(progress, 80),
            "C functions of 1,234 stacks are left to find  (Ctrl-C does without)");
}

TEST(ProgressText, IsCutToItsWidth) {
  EXPECT_EQ(ProgressText(TwelveSeconds(), 20), "0:12  11,998 samples");
}

}  // namespace
}  // namespace pystrobe::cli
